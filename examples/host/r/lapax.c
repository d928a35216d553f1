/* lapax for R: handlers as external pointers, which is how the package pjrt takes them.
 *
 *     PKG_CPPFLAGS=$(python -m lapax paths --cflags) PKG_LIBS=$(python -m lapax paths --libs) R CMD SHLIB lapax.c
 *
 * lapax.R calls it. */
#include <string.h>

#include <Rinternals.h>
#include <R_ext/Rdynload.h>

#include "lapax.h"

/* The handlers for the CPU: a list by the names of the targets. */
SEXP r_lapax_handlers(void) {
  int count = 0;
  const lapax_target *target;
  for (size_t i = 0; (target = lapax_target_at(i)); ++i) count += strcmp(target->platform, "cpu") == 0;
  SEXP handlers = PROTECT(Rf_allocVector(VECSXP, count)), names = PROTECT(Rf_allocVector(STRSXP, count));
  for (size_t i = 0, k = 0; (target = lapax_target_at(i)); ++i) {
    if (strcmp(target->platform, "cpu") != 0) continue;
    /* lapax is never unloaded: the pointer needs no finalizer. */
    SET_VECTOR_ELT(handlers, k, R_MakeExternalPtr((void *)target->handler, R_NilValue, R_NilValue));
    SET_STRING_ELT(names, k, Rf_mkChar(target->name));
    ++k;
  }
  Rf_setAttrib(handlers, R_NamesSymbol, names);
  UNPROTECT(2);
  return handlers;
}

/* Registers all targets in the plugin that was loaded from this path. */
SEXP r_lapax_register(SEXP path) {
  char *refusal = lapax_register_plugin(CHAR(STRING_ELT(path, 0)), NULL, NULL, NULL);
  if (refusal) {
    char text[1024];
    strncpy(text, refusal, sizeof text - 1);
    text[sizeof text - 1] = 0;
    lapax_free(refusal); /* Rf_error does not return. */
    Rf_error("%s", text);
  }
  return R_NilValue;
}

void R_init_lapax(DllInfo *info) {
  static const R_CallMethodDef calls[] = {
      {"r_lapax_handlers", (DL_FUNC)r_lapax_handlers, 0}, {"r_lapax_register", (DL_FUNC)r_lapax_register, 1}, {0}};
  R_registerRoutines(info, NULL, calls, NULL, NULL);
}
