/* lapax: linear-algebra targets for XLA programs, in any process that runs XLA.
 *
 * Load the library, register its targets in the host once, before the first program is compiled, and
 * unload neither the library nor the host.
 *
 *     char *error = lapax_register_pjrt(GetPjrtApi(), NULL, NULL, NULL);
 *     if (error) { fprintf(stderr, "%s\n", error); lapax_free(error); }
 *
 * Texts are UTF-8 and end with NUL. All functions may be called from any thread.
 */
#ifndef LAPAX_H_
#define LAPAX_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct PJRT_Api;     /* xla/pjrt/c/pjrt_c_api.h */
struct XLA_FFI_Api;  /* xla/ffi/api/c_api.h */

/* The library's version, "1.2.3". */
const char *lapax_version(void);

/* NULL where the kernels of this library for the CPU run on this processor, else why they cannot, valid as
 * long as the library is loaded. What all processors can load is built without LAPAX_SIMD. */
const char *lapax_unfit(void);

/* Frees a text that this library returned as char *. NULL is allowed. */
void lapax_free(char *text);

/* ---- Registration --------------------------------------------------------------------------------
 *
 * Each returns NULL on success, else a sentence for lapax_free.
 *
 * names     NULL for all targets, or names of targets with commas or spaces between them.
 * platform  NULL for the targets of all platforms, or one: "cpu" ("Host" in XLA).
 * prefix    NULL, or what comes in front of each registered name.
 *
 * To register the same again is harmless. A name that is no target's is an error, and nothing is
 * registered. Where the host refuses targets, because another handler has the name, the others are
 * registered, and the sentence says of each refused one why.
 */

/* In the XLA whose function table this is: xla::ffi::GetXlaFfiApi() in C++. */
char *lapax_register(const struct XLA_FFI_Api *api, const char *names, const char *platform,
                     const char *prefix);

/* In a PJRT plugin: what its GetPjrtApi() returned. Plugins from August 2025 on. */
char *lapax_register_pjrt(const struct PJRT_Api *api, const char *names, const char *platform,
                          const char *prefix);

/* In a PJRT plugin that the host has loaded, and whose PJRT_Api it keeps to itself: by the plugin's path, as
 * dlopen takes it. On Unix. */
char *lapax_register_plugin(const char *path, const char *names, const char *platform,
                            const char *prefix);

/* In an XLA that is linked into this program, or into the loaded library of this name (as dlopen takes
 * it), and shows the symbol XLA_FFI_GetApi or xla::ffi::GetXlaFfiApi; NULL means the program and what
 * it loaded globally. On Unix. */
char *lapax_register_process(const char *library, const char *names, const char *platform,
                             const char *prefix);

/* ---- The targets ---------------------------------------------------------------------------------*/

typedef struct lapax_target {
  size_t struct_size;     /* of this struct; later versions append fields */
  const char *name;       /* under which programs call it */
  const char *platform;   /* JAX's name: "cpu", XLA's "Host", or "CUDA" */
  const void *handler;    /* XLA_FFI_Handler * of its execute stage */
  const char *signature;  /* JSON: op, family, doc, layout, captured, dims, requires, attrs, variants */
  const void *initialize; /* XLA_FFI_Handler * of its initialize stage, or NULL */
} lapax_target;

/* How many there are, and each of them; NULL past the end. Valid as long as the library is loaded. */
size_t lapax_target_count(void);
const lapax_target *lapax_target_at(size_t index);

/* The XLA_FFI_Handler * of one, for hosts that register handlers themselves; NULL where there is no
 * such target. A NULL platform means the first that has the name. */
const void *lapax_handler(const char *name, const char *platform);

/* The shapes of a call's results: JSON in, JSON out, for lapax_free.
 * In:  {"target", "platform", "args": [{"dtype", "shape"}], "attrs": {}, "dims": {}}, where dims has
 *      the dimensions that no argument fixes.
 * Out: {"rets": [{"dtype", "shape"}]}, or {"error"} with the sentence of the handler's refusal. */
char *lapax_infer(const char *request);

/* The kernel that serves a call of a routine on this processor: JSON in, JSON out, for lapax_free.
 * In:  {"routine", "dtype", "batch", "sizes": []}, such as "lu", "f64", 1, [40, 40].
 * Out: {"route", "what", "sizes": {}}, or {"error"}. */
char *lapax_route(const char *request);

/* ---- Host callbacks -------------------------------------------------------------------------------
 *
 * A function of the user's that programs call: custom_call @lapax_host_callback(...) with the attribute
 * callback = <number> : i64, for a host in which both stages of that target are registered.
 */

typedef struct lapax_operand {
  void *data;           /* row-major; results are to be written */
  const int64_t *dims;
  int64_t rank;
  uint32_t dtype;       /* XLA_FFI_DataType */
} lapax_operand;

/* Called from any thread, several calls at a time. 0 on success, else an error whose sentence, of less
 * than error_size bytes and ended by NUL, it has written to error. */
typedef int (*lapax_function)(void *user, const lapax_operand *args, size_t arg_count,
                              const lapax_operand *rets, size_t ret_count, char *error,
                              size_t error_size);
typedef void (*lapax_drop)(void *user);

/* Makes a callback; its number, or 0 for a NULL function. drop, if not NULL, gets user when it was
 * released and no compiled program holds it any more. */
int64_t lapax_callback_new(lapax_function function, void *user, lapax_drop drop);

/* Lets it go; programs that hold it go on. */
void lapax_callback_release(int64_t number);

/* Whether its maker or a program holds it: 0 or 1. */
int lapax_callback_held(int64_t number);

/* The XLA_FFI_Handler * of the target's instantiate stage, or, for 0, of its execute stage. */
const void *lapax_callback_handler(int instantiate);

/* The XLA_FFI_Handler * of the execute stage on CUDA, which passes copies of the operands in the host's
 * memory and waits for them; NULL where this build has none. */
const void *lapax_callback_device_handler(void);

/* ---- The CPU backend -----------------------------------------------------------------------------*/

/* Those that are built in: a JSON array of {"name"}; of a LAPACK with "lapack" and "blas", the mapped
 * files or null, and "integer_bits". For lapax_free. */
char *lapax_backends(void);

/* The one in force: {"backend"} or {"error"}. For lapax_free. */
char *lapax_backend(void);

/* How many modules of CUDA kernels were built in: 0 where there was no nvcc. */
size_t lapax_cuda_kernels(void);

/* Null where this machine's NVIDIA driver runs these kernels, or where there is none; else why it cannot. */
const char *lapax_cuda_unfit(void);

/* What CUDA's targets will find here: {"kernels", "driver", "libraries"}, or null. For lapax_free. */
char *lapax_cuda(void);

/* Up to which orders ops on CUDA are done by kernels of their own: in {"gpu": "9.0"}, or null for any, out {"choices":
 * {op: {"batches", "alone", "measured", "why"}}} or {"error"}. For lapax_free. */
char *lapax_cuda_choices(const char *request);

/* Chooses it for all calls that begin afterwards, and answers as lapax_backend does. */
char *lapax_set_backend(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* LAPAX_H_ */
