// How instructions are made of operations: a class with a function `of`, for values of one type.
#pragma once

#include "decoder.h"
#include "thread.h"

namespace polder::ptx {

template <class T, class Operation>
bool run_unary(Thread& t, const Instruction& i) {
    t.set(i.d, static_cast<T>(Operation::of(t.get<T>(i.a))));
    return true;
}
template <class T, class Operation>
bool run_binary(Thread& t, const Instruction& i) {
    t.set(i.d, static_cast<T>(Operation::of(t.get<T>(i.a), t.get<T>(i.b))));
    return true;
}
template <class T, class Operation>
bool run_ternary(Thread& t, const Instruction& i) {
    t.set(i.d, static_cast<T>(Operation::of(t.get<T>(i.a), t.get<T>(i.b), t.get<T>(i.c))));
    return true;
}

// name<Operation>(type): the handler for integers of `type`; name_of_bits: for values of its size. Null for another type.

#define POLDER_PTX_BY_TYPE(name, runner)                                                                               \
    template <class Operation>                                                                                         \
    Handler name(Type type) {                                                                                          \
        switch (type) {                                                                                                \
        case Type::u16: return runner<uint16_t, Operation>;                                                            \
        case Type::u32: return runner<uint32_t, Operation>;                                                            \
        case Type::u64: return runner<uint64_t, Operation>;                                                            \
        case Type::s16: return runner<int16_t, Operation>;                                                             \
        case Type::s32: return runner<int32_t, Operation>;                                                             \
        case Type::s64: return runner<int64_t, Operation>;                                                             \
        default: return nullptr;                                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    template <class Operation>                                                                                         \
    Handler name##_of_bits(Type type) {                                                                                \
        switch (bytes_of(type)) {                                                                                      \
        case 1: return type == Type::pred ? runner<uint8_t, Operation> : nullptr;                                      \
        case 2: return runner<uint16_t, Operation>;                                                                    \
        case 4: return runner<uint32_t, Operation>;                                                                    \
        case 8: return runner<uint64_t, Operation>;                                                                    \
        default: return nullptr;                                                                                       \
        }                                                                                                              \
    }
POLDER_PTX_BY_TYPE(unary, run_unary)
POLDER_PTX_BY_TYPE(binary, run_binary)
POLDER_PTX_BY_TYPE(ternary, run_ternary)
#undef POLDER_PTX_BY_TYPE

}  // namespace polder::ptx
