// The types and the state spaces of PTX.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace polder::ptx {

enum class Type : uint8_t {
    none,
    pred,
    b8,
    b16,
    b32,
    b64,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    u16x2,
    s16x2,
    f16,
    f16x2,
    bf16,
    bf16x2,
    f32,
    f32x2,
    f64,
};

// `parameter`: of a kernel. Parameters of functions are in local memory.
enum class Space : uint8_t { generic, global, constant, shared, local, parameter };

// None: `name`, without its dot, is no type that we know.
[[nodiscard]] std::optional<Type> type_named(std::string_view name);
[[nodiscard]] std::optional<Space> space_named(std::string_view name);

[[nodiscard]] constexpr unsigned bytes_of(Type type) {
    switch (type) {
    case Type::none: return 0;
    case Type::pred:
    case Type::b8:
    case Type::u8:
    case Type::s8: return 1;
    case Type::b16:
    case Type::u16:
    case Type::s16:
    case Type::f16:
    case Type::bf16: return 2;
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f32x2:
    case Type::f64: return 8;
    default: return 4;
    }
}

[[nodiscard]] constexpr bool is_signed(Type type) {
    return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}
[[nodiscard]] constexpr bool is_float(Type type) {
    return type == Type::f16 || type == Type::bf16 || type == Type::f32 || type == Type::f64;
}

}  // namespace polder::ptx
