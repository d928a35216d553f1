// The runtime of emulator.h: fibers, their scheduler, meetings, the list of kernels, the C entry.
#include "emulator.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#if defined(__SANITIZE_THREAD__)
extern "C" {
void* __tsan_create_fiber(unsigned);
void __tsan_destroy_fiber(void*);
void __tsan_switch_to_fiber(void*, unsigned);
void* __tsan_get_current_fiber(void);
void __tsan_acquire(void*);
void __tsan_release(void*);
}
#define TSAN(...) __VA_ARGS__
#else
#define TSAN(...)
#endif
#if defined(__SANITIZE_ADDRESS__)
extern "C" {
void __sanitizer_start_switch_fiber(void**, const void*, size_t);
void __sanitizer_finish_switch_fiber(void*, const void**, size_t*);
}
#define ASAN(...) __VA_ARGS__
#else
#define ASAN(...)
#endif
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

// Saves the callee-saved registers and the stack pointer in *save, and goes on with another stack.
extern "C" void emulator_switch(void** save, void* load);
#if defined(__x86_64__)
asm(R"(
.text
.globl emulator_switch
.type emulator_switch,@function
emulator_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size emulator_switch,.-emulator_switch
)");
constexpr int SAVED_WORDS = 6, RETURN_WORD = 6, FRAME_WORDS = 8;
#elif defined(__aarch64__)
asm(R"(
.text
.globl emulator_switch
.type emulator_switch,%function
emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32]; stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]; stp d10, d11, [sp, #112]; stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32]; ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]; ldp d10, d11, [sp, #112]; ldp d12, d13, [sp, #128]; ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size emulator_switch,.-emulator_switch
)");
constexpr int SAVED_WORDS = 20, RETURN_WORD = 11, FRAME_WORDS = 20;
#else
#error "emulator_switch is to be written for this processor"
#endif

namespace emulator {
namespace {
constexpr size_t STACK = 128 << 10;
constexpr int LARGEST_BLOCK = 1024;
constexpr unsigned char POISON = 0xA5;

std::map<std::string, Invoke>& kernels() {
  static std::map<std::string, Invoke> list;
  return list;
}

enum class State { READY, AT_BARRIER, IN_WARP, DONE };

struct Fiber {
  Thread thread;
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  State state = State::READY;
  const char* file = "";
  int line = 0, id = 0;
  unsigned warp = 0;
  uint64_t received[32];
  TSAN(void* tsan = nullptr;)
  ASAN(void* fake_stack = nullptr;)
};

// A warp's meeting that some lanes of the mask have not come to yet.
struct Gathering {
  Meeting kind;
  unsigned mask, arrived;
  const char* file;
  int line;
  char* tag;
  uint64_t values[32];
};

// Not memcpy, of which ThreadSanitizer would know.
void copy(uint64_t* to, const uint64_t* from) {
  for (int i = 0; i < 32; i++) {
    to[i] = from[i];
    __asm__ volatile("" ::: "memory");
  }
}

struct Launch {
  std::vector<Fiber> fibers;
  std::vector<std::vector<Gathering>> gatherings;
  std::vector<int> ready;
  void* scheduler = nullptr;
  Fiber* running = nullptr;
  int live = 0, at_barrier = 0;
  // Of those at the barrier, and of those that left the last one.
  bool any = false, any_before = false;
  const char* barrier_file = nullptr;
  int barrier_line = 0;
  std::string error;
  Invoke invoke = nullptr;
  void** arguments = nullptr;
  // Addresses by which ThreadSanitizer knows meetings; a fresh one for each, lest one order another.
  char barrier_tags[4], edge_tag, warp_tags[32][64];
  unsigned barriers = 0, warp_meetings[32] = {};
  TSAN(void* tsan = nullptr;)
  ASAN(void* fake_stack = nullptr; const void* stack_bottom = nullptr; size_t stack_size = 0;)
};
thread_local Launch* launch = nullptr;

void leave(bool for_ever) {
  Fiber* own = launch->running;
  (void)for_ever;
  TSAN(__tsan_switch_to_fiber(launch->tsan, 1);)
  ASAN(__sanitizer_start_switch_fiber(for_ever ? nullptr : &own->fake_stack, launch->stack_bottom,
                                      launch->stack_size);)
  emulator_switch(&own->stack_pointer, launch->scheduler);
  ASAN(__sanitizer_finish_switch_fiber(own->fake_stack, nullptr, nullptr);)
}

void wake(Fiber& fiber) {
  fiber.state = State::READY;
  launch->ready.push_back(fiber.id);
}

void open_barrier_if_all_there() {
  if (launch->at_barrier == 0 || launch->at_barrier != launch->live) return;
  launch->at_barrier = 0;
  launch->barriers++;
  launch->any_before = launch->any;
  launch->any = false;
  for (Fiber& fiber : launch->fibers)
    if (fiber.state == State::AT_BARRIER) wake(fiber);
}

void enter() {
  ASAN(__sanitizer_finish_switch_fiber(nullptr, &launch->stack_bottom, &launch->stack_size);)
  TSAN(__tsan_acquire(&launch->edge_tag);)
  launch->invoke(launch->arguments);
  TSAN(__tsan_release(&launch->edge_tag);)
  launch->running->state = State::DONE;
  launch->live--;
  open_barrier_if_all_there();
  leave(true);
  abort();
}

void resume(Fiber& fiber) {
  launch->running = &fiber;
  current = &fiber.thread;
  TSAN(__tsan_switch_to_fiber(fiber.tsan, 1);)
  ASAN(__sanitizer_start_switch_fiber(&launch->fake_stack, fiber.stack, STACK);)
  emulator_switch(&launch->scheduler, fiber.stack_pointer);
  ASAN(__sanitizer_finish_switch_fiber(launch->fake_stack, nullptr, nullptr);)
}

std::string who_waits(const Launch& own) {
  std::map<std::string, int> places;
  for (const Fiber& fiber : own.fibers)
    if (fiber.state != State::DONE)
      places[std::string(fiber.file) + ":" + std::to_string(fiber.line)]++;
  std::string text = "deadlock:";
  for (const auto& [place, count] : places) text += " " + std::to_string(count) + " threads at " + place;
  return text;
}

void prepare_block(Launch& own, uint3 block, uint3 blocks, uint3 threads, char* stacks,
                   unsigned char* shared, size_t shared_bytes) {
  if (shared) memset(shared, POISON, shared_bytes);
  own.live = (int)own.fibers.size();
  own.at_barrier = 0;
  own.ready.clear();
  for (int i = 0; i < own.live; i++) {
    Fiber& fiber = own.fibers[i];
    const unsigned t = i, x = threads.x, y = threads.y;
    fiber.id = i;
    fiber.stack = stacks + STACK * i;
    fiber.state = State::READY;
    fiber.warp = t / 32;
    fiber.thread = {{t % x, t / x % y, t / (x * y)}, block, threads, blocks, t % 32, shared};
    void** frame = reinterpret_cast<void**>(fiber.stack + STACK) - FRAME_WORDS;
    for (int word = 0; word < FRAME_WORDS; word++) frame[word] = nullptr;
    frame[RETURN_WORD] = reinterpret_cast<void*>(enter);
    fiber.stack_pointer = frame;
    own.ready.push_back(i);
  }
}

void run_block(Launch& own, std::mt19937& random, bool shuffled) {
  std::vector<int> turn;
  turn.reserve(own.fibers.size());
  TSAN(__tsan_release(&own.edge_tag);)
  while (!own.ready.empty() && own.error.empty()) {
    turn.clear();
    turn.swap(own.ready);
    own.ready.reserve(own.fibers.size());
    if (shuffled) std::shuffle(turn.begin(), turn.end(), random);
    for (int i : turn)
      if (own.error.empty()) resume(own.fibers[i]);
  }
  TSAN(__tsan_acquire(&own.edge_tag);)
  if (own.error.empty() && own.live > 0) own.error = who_waits(own);
}

std::string run(Invoke invoke, uint3 blocks, uint3 threads, size_t shared_bytes, void** arguments,
                unsigned seed) {
  const size_t count = (size_t)threads.x * threads.y * threads.z;
  if (count < 1 || count > LARGEST_BLOCK) return "a block has 1 to 1024 threads";
  Launch own;
  own.invoke = invoke;
  own.arguments = arguments;
  own.fibers.resize(count);
  // Nothing allocates inside a fiber.
  own.gatherings.resize((count + 31) / 32);
  for (auto& list : own.gatherings) list.reserve(33);
  own.ready.reserve(count);
  launch = &own;
  std::mt19937 random(seed);
  TSAN(own.tsan = __tsan_get_current_fiber();)
  TSAN(for (Fiber& fiber : own.fibers) fiber.tsan = __tsan_create_fiber(1);)
  void* stacks = mmap(nullptr, STACK * count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) return "no memory for the stacks";
  void* shared = nullptr;
  if (shared_bytes && posix_memalign(&shared, 16, shared_bytes)) return "no shared memory";
  for (unsigned z = 0; z < blocks.z; z++)
    for (unsigned y = 0; y < blocks.y; y++)
      for (unsigned x = 0; x < blocks.x && own.error.empty(); x++) {
        prepare_block(own, {x, y, z}, blocks, threads, static_cast<char*>(stacks),
                      static_cast<unsigned char*>(shared), shared_bytes);
        run_block(own, random, seed != 0);
      }
  TSAN(for (Fiber& fiber : own.fibers) __tsan_destroy_fiber(fiber.tsan);)
  munmap(stacks, STACK * count);
  free(shared);
  launch = nullptr;
  return own.error;
}
}  // namespace

thread_local Thread* current = nullptr;

Kernel::Kernel(const char* name, Invoke invoke) { kernels()[name] = invoke; }

void fail(const char* file, int line, const char* why) {
  Fiber* own = launch->running;
  if (launch->error.empty())
    launch->error = std::string(file) + ":" + std::to_string(line) + ": " + why + " (thread " +
                    std::to_string(own->id) + ", block " + std::to_string(own->thread.block.x) + ")";
  own->state = State::IN_WARP;
  leave(false);
  abort();
}

bool meet_block(bool vote, const char* file, int line) {
  Fiber* own = launch->running;
  if (launch->at_barrier == 0) {
    launch->barrier_file = file;
    launch->barrier_line = line;
  } else if (launch->barrier_line != line || strcmp(launch->barrier_file, file) != 0) {
    fail(file, line, "threads of a block meet at different __syncthreads");
  }
  TSAN(char* tag = &launch->barrier_tags[launch->barriers % 4]; __tsan_release(tag);)
  own->state = State::AT_BARRIER;
  own->file = file;
  own->line = line;
  launch->at_barrier++;
  launch->any |= vote;
  open_barrier_if_all_there();
  leave(false);
  TSAN(__tsan_acquire(tag);)
  return launch->any_before;
}

void meet_warp(Meeting kind, unsigned mask, uint64_t value, uint64_t* all, const char* file, int line) {
  Fiber* own = launch->running;
  const unsigned lane = own->thread.lane;
  if (!(mask >> lane & 1)) fail(file, line, "the calling lane is not in the mask");
  auto& list = launch->gatherings[own->warp];
  auto found = std::find_if(list.begin(), list.end(), [&](const Gathering& it) { return it.mask == mask; });
  if (found == list.end()) {
    char* tag = &launch->warp_tags[own->warp][launch->warp_meetings[own->warp]++ % 64];
    list.push_back({kind, mask, 0, file, line, tag, {}});
    found = list.end() - 1;
  }
  Gathering& here = *found;
  if (here.line != line || here.kind != kind || strcmp(here.file, file) != 0)
    fail(file, line, "lanes of one mask meet in different warp operations");
  TSAN(char* tag = here.tag; if (kind == Meeting::SYNC) __tsan_release(tag);)
  here.values[lane] = value;
  here.arrived |= 1u << lane;
  if (here.arrived == mask) {
    for (unsigned i = 0; i < 32; i++) {
      if (!(mask >> i & 1)) continue;
      const size_t id = (size_t)own->warp * 32 + i;
      if (id >= launch->fibers.size()) fail(file, line, "the mask names lanes beyond the block");
      Fiber& fiber = launch->fibers[id];
      copy(fiber.received, here.values);
      if (&fiber != own) wake(fiber);
    }
    list.erase(found);
  } else {
    own->state = State::IN_WARP;
    own->file = file;
    own->line = line;
    leave(false);
  }
  TSAN(if (kind == Meeting::SYNC) __tsan_acquire(tag);)
  if (all) copy(all, own->received);
}
}  // namespace emulator

// Runs a kernel as cuLaunchKernel would; 0, or 1 with why not in `error`. `seed` shuffles the order of
// threads, 0 leaves them in order.
extern "C" int emulator_launch(const char* name, const unsigned* blocks, const unsigned* threads,
                               size_t shared_bytes, void** arguments, unsigned seed, char* error,
                               size_t error_size) {
  const auto found = emulator::kernels().find(name);
  std::string text = std::string("no kernel ") + name;
  if (found != emulator::kernels().end())
    text = emulator::run(found->second, {blocks[0], blocks[1], blocks[2]},
                         {threads[0], threads[1], threads[2]}, shared_bytes, arguments, seed);
  snprintf(error, error_size, "%s", text.c_str());
  return text.empty() ? 0 : 1;
}

// Whether there is such a kernel.
extern "C" int emulator_has(const char* name) { return emulator::kernels().count(name) != 0; }
