/* Runs a StableHLO program with linear algebra in C, without Python: loads a PJRT plugin and lapax,
 * registers lapax's targets, compiles the program, runs it, and compares with stored answers.
 *
 *     python -m lapax export jax.numpy.linalg.solve a.npy 'f64[5,2]' --plugin plugin.so --with-data -o solve.mlirbc
 *     cc host.c -o host $(python -m lapax paths --cflags --libs) -I<plugin>/include -ldl -lm
 *     ./host plugin.so solve.mlirbc solve.data
 *
 * lapax/_data.py describes solve.data; minimal.c is the same without it, for one program.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lapax.h"
#include "pjrt_c_api.h"

static const PJRT_Api *pjrt;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

/* Ends the program with the plugin's words where a call failed. */
static void check(PJRT_Error *error, const char *what) {
  if (!error) return;
  PJRT_Error_Message_Args args = {.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE};
  args.error = error;
  pjrt->PJRT_Error_Message(&args);
  fprintf(stderr, "%s: %.*s\n", what, (int)args.message_size, args.message);
  exit(1);
}

/* `args` of the type that the function takes, with its size filled in and all else zero. */
#define ARGS(Function) \
  Function##_Args args = {.struct_size = Function##_Args_STRUCT_SIZE}
#define CALL(Function) check(pjrt->Function(&args), #Function)

static void wait_for(PJRT_Event *event) {
  {
    ARGS(PJRT_Event_Await);
    args.event = event;
    CALL(PJRT_Event_Await);
  }
  ARGS(PJRT_Event_Destroy);
  args.event = event;
  CALL(PJRT_Event_Destroy);
}

/* ---- The data: arrays with their types, and for answers how far off they may be. ---- */

typedef struct {
  PJRT_Buffer_Type type;
  size_t item;      /* bytes of one element */
  size_t rank;
  int64_t dims[8];
  size_t count;     /* of elements */
  double tolerance; /* relative to the largest expected entry */
  char *bytes;
} Array;

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail(path, "cannot be read");
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*size + 1);
  if (!bytes || fread(bytes, 1, *size, file) != *size) fail(path, "cannot be read");
  fclose(file);
  return bytes;
}

static int64_t read_i64(char **at) {
  int64_t value;
  memcpy(&value, *at, sizeof value);
  *at += sizeof value;
  return value;
}

static Array read_array(char **at) {
  static const struct { char name[8]; PJRT_Buffer_Type type; size_t item; } types[] = {
      {"f32", PJRT_Buffer_Type_F32, 4},  {"f64", PJRT_Buffer_Type_F64, 8},
      {"c64", PJRT_Buffer_Type_C64, 8},  {"c128", PJRT_Buffer_Type_C128, 16},
      {"i32", PJRT_Buffer_Type_S32, 4},
  };
  Array array = {.count = 1};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
    if (strncmp(types[i].name, *at, 8) == 0) array.type = types[i].type, array.item = types[i].item;
  if (!array.item) fail("data", "an unknown element type");
  *at += 8;
  memcpy(&array.tolerance, *at, 8);
  *at += 8;
  array.rank = (size_t)read_i64(at);
  for (size_t i = 0; i < array.rank; ++i) {
    array.dims[i] = read_i64(at);
    array.count *= (size_t)array.dims[i];
  }
  array.bytes = *at;
  *at += array.count * array.item;
  return array;
}

/* The k-th real number of the array: complex ones count twice. */
static double number(const Array *array, const char *bytes, size_t k) {
  double f64;
  float f32;
  int32_t i32;
  switch (array->type) {
    case PJRT_Buffer_Type_F64:
    case PJRT_Buffer_Type_C128:
      memcpy(&f64, bytes + 8 * k, 8);
      return f64;
    case PJRT_Buffer_Type_S32:
      memcpy(&i32, bytes + 4 * k, 4);
      return i32;
    default:
      memcpy(&f32, bytes + 4 * k, 4);
      return f32;
  }
}

/* The largest difference, relative to the largest expected entry. */
static double distance(const Array *expected, const char *got) {
  int complex = expected->type == PJRT_Buffer_Type_C64 || expected->type == PJRT_Buffer_Type_C128;
  double largest = 0, scale = 0;
  for (size_t k = 0; k < expected->count << complex; ++k) {
    double want = number(expected, expected->bytes, k);
    double off = fabs(want - number(expected, got, k));
    if (!(off <= largest)) largest = off; /* NaN stays */
    if (isnan(largest)) return largest;
    scale = fmax(scale, fabs(want));
  }
  return scale > 0 ? largest / scale : largest;
}

/* ---- PJRT, step by step. ---- */

static PJRT_Client *create_client(void) {
  {
    ARGS(PJRT_Plugin_Initialize);
    CALL(PJRT_Plugin_Initialize);
  }
  ARGS(PJRT_Client_Create);
  CALL(PJRT_Client_Create);
  return args.client;
}

static PJRT_LoadedExecutable *compile(PJRT_Client *client, const char *path) {
  /* CompileOptionsProto: one replica, one partition. */
  static const char options[] = {0x1a, 0x04, 0x20, 0x01, 0x28, 0x01};
  PJRT_Program program = {.struct_size = PJRT_Program_STRUCT_SIZE, .format = "mlir", .format_size = 4};
  program.code = read_file(path, &program.code_size);
  ARGS(PJRT_Client_Compile);
  args.client = client;
  args.program = &program;
  args.compile_options = options;
  args.compile_options_size = sizeof options;
  CALL(PJRT_Client_Compile);
  free(program.code);
  return args.executable;
}

static size_t output_count(PJRT_LoadedExecutable *loaded) {
  PJRT_Executable *executable;
  {
    ARGS(PJRT_LoadedExecutable_GetExecutable);
    args.loaded_executable = loaded;
    CALL(PJRT_LoadedExecutable_GetExecutable);
    executable = args.executable;
  }
  ARGS(PJRT_Executable_NumOutputs);
  args.executable = executable;
  CALL(PJRT_Executable_NumOutputs);
  return args.num_outputs;
}

static PJRT_Buffer *to_device(PJRT_Client *client, const Array *array) {
  PJRT_Device *device;
  {
    ARGS(PJRT_Client_AddressableDevices);
    args.client = client;
    CALL(PJRT_Client_AddressableDevices);
    device = args.addressable_devices[0];
  }
  ARGS(PJRT_Client_BufferFromHostBuffer);
  args.client = client;
  args.data = array->bytes;
  args.type = array->type;
  args.dims = array->dims;
  args.num_dims = array->rank;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = device;
  CALL(PJRT_Client_BufferFromHostBuffer);
  wait_for(args.done_with_host_buffer);
  return args.buffer;
}

static void execute(PJRT_LoadedExecutable *executable, PJRT_Buffer **in, size_t in_count, PJRT_Buffer **out) {
  PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE};
  PJRT_Buffer *const *inputs[] = {in};
  PJRT_Buffer **const outputs[] = {out};
  PJRT_Event *done[1];
  ARGS(PJRT_LoadedExecutable_Execute);
  args.executable = executable;
  args.options = &options;
  args.argument_lists = inputs;
  args.num_devices = 1;
  args.num_args = in_count;
  args.output_lists = outputs;
  args.device_complete_events = done;
  CALL(PJRT_LoadedExecutable_Execute);
  wait_for(done[0]);
}

static char *to_host(PJRT_Buffer *buffer, const Array *like) {
  ARGS(PJRT_Buffer_ToHostBuffer);
  args.src = buffer;
  CALL(PJRT_Buffer_ToHostBuffer);
  if (args.dst_size != like->count * like->item) fail("an output", "has another size than expected");
  args.dst = malloc(args.dst_size + 1);
  CALL(PJRT_Buffer_ToHostBuffer);
  wait_for(args.event);
  return args.dst;
}

static void destroy_buffer(PJRT_Buffer *buffer) {
  ARGS(PJRT_Buffer_Destroy);
  args.buffer = buffer;
  CALL(PJRT_Buffer_Destroy);
}

int main(int count, char **words) {
  if (count != 4) fail("usage", "host plugin.so program.mlirbc program.data");
  void *plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (!plugin) fail(words[1], dlerror());
  const PJRT_Api *(*get)(void);
  *(void **)&get = dlsym(plugin, "GetPjrtApi");
  if (!get) fail(words[1], "is no PJRT plugin");
  pjrt = get();

  /* The one thing that lapax needs. */
  char *refusal = lapax_register_pjrt(pjrt, NULL, NULL, NULL);
  if (refusal) fail("lapax", refusal);

  PJRT_Client *client = create_client();
  PJRT_LoadedExecutable *executable = compile(client, words[2]);
  size_t size;
  char *data = read_file(words[3], &size), *at = data;
  size_t in_count = (size_t)read_i64(&at), out_count = (size_t)read_i64(&at);
  if (in_count > 8 || out_count > 16) fail(words[3], "has more arrays than this program has room for");
  if (output_count(executable) != out_count) fail(words[2], "has another number of outputs than answers");
  PJRT_Buffer *in[8], *out[16];
  for (size_t i = 0; i < in_count; ++i) {
    Array array = read_array(&at);
    in[i] = to_device(client, &array);
  }
  execute(executable, in, in_count, out);
  int wrong = 0;
  for (size_t i = 0; i < out_count; ++i) {
    Array expected = read_array(&at);
    char *got = to_host(out[i], &expected);
    double off = distance(&expected, got);
    int good = off <= expected.tolerance;
    printf("output %zu: off by %.1e, limit %.1e%s\n", i, off, expected.tolerance, good ? "" : " WRONG");
    wrong |= !good;
    free(got);
    destroy_buffer(out[i]);
  }
  for (size_t i = 0; i < in_count; ++i) destroy_buffer(in[i]);
  free(data);
  ARGS(PJRT_LoadedExecutable_Destroy);
  args.executable = executable;
  CALL(PJRT_LoadedExecutable_Destroy);
  return wrong;
}
