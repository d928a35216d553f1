// The handlers of compare.rs, written with the C++ binding of jaxlib's headers.
#include <cstdint>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

volatile int64_t sink;

template <typename... Values>
ffi::Error Use(Values... values) {
  sink = (static_cast<int64_t>(values) + ... + 0);
  return ffi::Error::Success();
}

int64_t Address(const void* data) { return reinterpret_cast<int64_t>(data); }

using A = ffi::BufferR2<ffi::F64>;
using B = ffi::BufferR1<ffi::S32>;
using C = ffi::ResultBufferR2<ffi::F64>;
using D = ffi::ResultBufferR1<ffi::S32>;
using E = ffi::ResultBufferR0<ffi::S32>;
using Any = ffi::AnyBuffer;
using AnyRet = ffi::Result<ffi::AnyBuffer>;

int64_t Operands(const A& a, const B& b, const C& c, const D& d, const E& e) {
  return Address(a.typed_data()) + Address(b.typed_data()) + Address(c->typed_data()) +
         Address(d->typed_data()) + Address(e->typed_data());
}

struct Params {
  int64_t alpha;
  uint8_t mode;
  std::string_view name;
  ffi::Span<const int64_t> perm;
};

}  // namespace

XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Params, ::xla::ffi::StructMember<int64_t>("alpha"),
                                      ::xla::ffi::StructMember<uint8_t>("mode"),
                                      ::xla::ffi::StructMember<std::string_view>("name"),
                                      ::xla::ffi::StructMember<::xla::ffi::Span<const int64_t>>("perm"));

#define OPERANDS                                                              \
  ffi::Ffi::Bind()                                                            \
      .Arg<ffi::BufferR2<ffi::F64>>()                                         \
      .Arg<ffi::BufferR1<ffi::S32>>()                                         \
      .Ret<ffi::BufferR2<ffi::F64>>()                                         \
      .Ret<ffi::BufferR1<ffi::S32>>()                                         \
      .Ret<ffi::BufferR0<ffi::S32>>()
#define ATTRIBUTES                                                            \
  .Attr<int64_t>("alpha")                                                     \
      .Attr<uint8_t>("mode")                                                  \
      .Attr<std::string_view>("name")                                         \
      .Attr<ffi::Span<const int64_t>>("perm")

static ffi::Error Typed(A a, B b, C c, D d, E e, int64_t alpha, uint8_t mode, std::string_view name,
                        ffi::Span<const int64_t> perm) {
  return Use(Operands(a, b, c, d, e), alpha, mode, name.size(), perm.size());
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpp_typed, Typed, OPERANDS ATTRIBUTES);

static ffi::Error Nothing() { return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpp_nothing, Nothing, ffi::Ffi::Bind());

static ffi::Error AnyBuffers(Any a, Any b, AnyRet c, AnyRet d, AnyRet e, int64_t alpha, uint8_t mode,
                             std::string_view name, ffi::Span<const int64_t> perm) {
  return Use(Address(a.untyped_data()), Address(b.untyped_data()), Address(c->untyped_data()),
             Address(d->untyped_data()), Address(e->untyped_data()), alpha, mode, name.size(), perm.size());
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpp_any, AnyBuffers,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>() ATTRIBUTES);

static ffi::Error Struct(A a, B b, C c, D d, E e, Params params) {
  return Use(Operands(a, b, c, d, e), params.alpha, params.mode, params.name.size(), params.perm.size());
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpp_struct, Struct, OPERANDS.Attrs<Params>());

static ffi::Error Dict(A a, B b, C c, D d, E e, ffi::Dictionary attrs) {
  return Use(Operands(a, b, c, d, e), *attrs.get<int64_t>("alpha"), *attrs.get<uint8_t>("mode"),
             attrs.get<std::string_view>("name")->size());
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(cpp_dictionary, Dict, OPERANDS.Attrs());
