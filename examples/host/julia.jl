# lapax in Julia. Its tests make these two calls in C; the file itself has not been run.
#
#     ENV["LAPAX"] = readchomp(`python -c "from lapax._library import path; print(path())"`)

using Libdl

const lapax = Libdl.dlopen(ENV["LAPAX"])

# The XLA_FFI_Handler* of a target, for hosts that register handlers themselves.
handler(name; platform = "cpu") =
    ccall(dlsym(lapax, :lapax_handler), Ptr{Cvoid}, (Cstring, Cstring), name, platform)

# All targets, in the PJRT plugin that was loaded from this path.
function register(plugin)
    refusal = ccall(
        dlsym(lapax, :lapax_register_plugin), Ptr{UInt8},
        (Cstring, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}), plugin, C_NULL, C_NULL, C_NULL,
    )
    refusal == C_NULL && return
    text = unsafe_string(refusal)
    ccall(dlsym(lapax, :lapax_free), Cvoid, (Ptr{UInt8},), refusal)
    error(text)
end
