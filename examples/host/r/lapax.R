# lapax in R, beside lapax.c:
#
#     Rscript lapax.R                  # with the package pjrt: registers every handler for the CPU
#     Rscript lapax.R plugin.so        # in a plugin by its path

folder <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)[1]))
dyn.load(file.path(folder, paste0("lapax", .Platform$dynlib.ext)))

handlers <- .Call("r_lapax_handlers", PACKAGE = "lapax")
plugin <- commandArgs(TRUE)
if (length(plugin) == 1) {
  dyn.load(plugin)
  .Call("r_lapax_register", plugin, PACKAGE = "lapax")
} else if (requireNamespace("pjrt", quietly = TRUE)) {
  for (name in names(handlers)) {
    pjrt::pjrt_register_custom_call(name, list(host = handlers[[name]]))
  }
}
cat(length(handlers), "handlers, such as", names(handlers)[1], typeof(handlers[[1]]), "\n")
