// Operators of two values of one type that several groups of instructions share: logic, atomic operations, reductions of a warp.
#pragma once

#include <algorithm>

namespace polder::ptx {

struct And {
    template <class T>
    static T of(T a, T b) {
        return a & b;
    }
};
struct Or {
    template <class T>
    static T of(T a, T b) {
        return a | b;
    }
};
struct Xor {
    template <class T>
    static T of(T a, T b) {
        return a ^ b;
    }
};
struct Min {
    template <class T>
    static T of(T a, T b) {
        return std::min(a, b);
    }
};
struct Max {
    template <class T>
    static T of(T a, T b) {
        return std::max(a, b);
    }
};

}  // namespace polder::ptx
