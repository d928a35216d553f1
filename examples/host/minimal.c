/* The least that a C program needs to run linear algebra exported from JAX, here a Cholesky factorisation:
 *
 *     python -m lapax export jax.numpy.linalg.cholesky 'f64[2,2]' --plugin plugin.so -o cholesky.mlirbc
 *     cc minimal.c -o minimal $(python -m lapax paths --cflags --libs) -I<plugin>/include -ldl
 *     ./minimal plugin.so cholesky.mlirbc
 *
 * host.c is a whole program: any operands, every object destroyed, answers compared. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "lapax.h"
#include "pjrt_c_api.h"

static const PJRT_Api *pjrt;

/* Calls a function of PJRT with `args`, whose size is filled in, and ends the program with its words. */
#define ARGS(Function, ...) Function##_Args args = {.struct_size = Function##_Args_STRUCT_SIZE, __VA_ARGS__}
#define CALL(Function) check(pjrt->Function(&args), #Function)

static void check(PJRT_Error *error, const char *what) {
  if (!error) return;
  PJRT_Error_Message_Args args = {.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE, .error = error};
  pjrt->PJRT_Error_Message(&args);
  fprintf(stderr, "%s: %.*s\n", what, (int)args.message_size, args.message);
  exit(1);
}

static void await(PJRT_Event *event) {
  ARGS(PJRT_Event_Await, .event = event);
  CALL(PJRT_Event_Await);
}

int main(int count, char **words) {
  static char code[1 << 20];
  FILE *file = count == 3 ? fopen(words[2], "rb") : NULL;
  void *plugin = file ? dlopen(words[1], RTLD_NOW) : NULL;
  const PJRT_Api *(*get)(void) = NULL;
  if (plugin) *(void **)&get = dlsym(plugin, "GetPjrtApi");
  if (!get) return fprintf(stderr, "usage: minimal plugin.so cholesky.mlirbc\n"), 2;
  pjrt = get();

  char *refusal = lapax_register_pjrt(pjrt, NULL, NULL, NULL); /* the one thing that lapax needs */
  if (refusal) return fprintf(stderr, "%s\n", refusal), 1;

  PJRT_Client *client;
  PJRT_Device *device;
  PJRT_LoadedExecutable *executable;
  PJRT_Buffer *in, *out;
  { ARGS(PJRT_Plugin_Initialize, 0); CALL(PJRT_Plugin_Initialize); }
  { ARGS(PJRT_Client_Create, 0); CALL(PJRT_Client_Create); client = args.client; }
  { ARGS(PJRT_Client_AddressableDevices, .client = client); CALL(PJRT_Client_AddressableDevices);
    device = args.addressable_devices[0]; }
  {
    static const char one[] = {0x1a, 0x04, 0x20, 0x01, 0x28, 0x01}; /* CompileOptionsProto: one replica */
    PJRT_Program program = {.struct_size = PJRT_Program_STRUCT_SIZE, .format = "mlir", .format_size = 4,
                            .code = code, .code_size = fread(code, 1, sizeof code, file)};
    ARGS(PJRT_Client_Compile, .client = client, .program = &program, .compile_options = one,
         .compile_options_size = sizeof one);
    CALL(PJRT_Client_Compile);
    executable = args.executable;
  }
  double a[2][2] = {{4, 2}, {2, 5}}, l[2][2];
  {
    ARGS(PJRT_Client_BufferFromHostBuffer, .client = client, .data = a, .type = PJRT_Buffer_Type_F64,
         .dims = (int64_t[]){2, 2}, .num_dims = 2, .device = device);
    CALL(PJRT_Client_BufferFromHostBuffer);
    await(args.done_with_host_buffer);
    in = args.buffer;
  }
  {
    PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE};
    PJRT_Buffer *const *inputs[] = {&in};
    PJRT_Buffer **const outputs[] = {&out};
    ARGS(PJRT_LoadedExecutable_Execute, .executable = executable, .options = &options, .num_devices = 1,
         .argument_lists = inputs, .num_args = 1, .output_lists = outputs);
    CALL(PJRT_LoadedExecutable_Execute);
  }
  { ARGS(PJRT_Buffer_ToHostBuffer, .src = out, .dst = l, .dst_size = sizeof l);
    CALL(PJRT_Buffer_ToHostBuffer); await(args.event); }
  printf("%g %g\n%g %g\n", l[0][0], l[0][1], l[1][0], l[1][1]);
}
