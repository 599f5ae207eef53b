// One table from names to addresses: printf and device queues (lib/kernel), memory functions, the mathematical functions of the C library
// that LLVM may call for an intrinsic, and functions of libgcc for half and 128-bit numbers.
#include "runtime_symbols.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <kernel/device_enqueue.h>
#include <kernel/printf.h>
#include <unordered_map>

// Conversions of half on processors without the instructions, and 128-bit arithmetic; in libgcc.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
float __extendhfsf2(uint16_t);
uint16_t __truncsfhf2(float);
uint16_t __truncdfhf2(double);
__extension__ typedef __int128 polder_int128;
__extension__ typedef unsigned __int128 polder_uint128;
polder_int128 __divti3(polder_int128, polder_int128);
polder_int128 __modti3(polder_int128, polder_int128);
polder_uint128 __udivti3(polder_uint128, polder_uint128);
polder_uint128 __umodti3(polder_uint128, polder_uint128);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace polder::compiler {
namespace {

template <class F>
void* address_of(F* function) {
    return reinterpret_cast<void*>(function);
}

using Symbols = std::unordered_map<std::string_view, void*>;

Symbols symbols() {
    using Float = float(float);
    using Float2 = float(float, float);
    using Float3 = float(float, float, float);
    using Double = double(double);
    using Double2 = double(double, double);
    using Double3 = double(double, double, double);
    return {
        {"polder_printf", address_of(&polder_printf)},
        {"polder_device_enqueue", address_of(&polder_device_enqueue)},
        {"polder_device_query", address_of(&polder_device_query)},
        {"polder_device_default_queue", address_of(&polder_device_default_queue)},
        {"polder_device_create_event", address_of(&polder_device_create_event)},
        {"polder_device_set_event_status", address_of(&polder_device_set_event_status)},
        {"polder_device_retain_event", address_of(&polder_device_retain_event)},
        {"polder_device_release_event", address_of(&polder_device_release_event)},
        {"polder_device_is_event", address_of(&polder_device_is_event)},
        {"polder_device_capture_time", address_of(&polder_device_capture_time)},
        {"memcpy", address_of<void*(void*, const void*, size_t)>(&std::memcpy)},
        {"memmove", address_of<void*(void*, const void*, size_t)>(&std::memmove)},
        {"memset", address_of<void*(void*, int, size_t)>(&std::memset)},
        {"memcmp", address_of<int(const void*, const void*, size_t)>(&std::memcmp)},
        {"fmaf", address_of<Float3>(&::fmaf)},
        {"fma", address_of<Double3>(&::fma)},
        {"fmodf", address_of<Float2>(&::fmodf)},
        {"fmod", address_of<Double2>(&::fmod)},
        {"fminf", address_of<Float2>(&::fminf)},
        {"fmin", address_of<Double2>(&::fmin)},
        {"fmaxf", address_of<Float2>(&::fmaxf)},
        {"fmax", address_of<Double2>(&::fmax)},
        {"floorf", address_of<Float>(&::floorf)},
        {"floor", address_of<Double>(&::floor)},
        {"ceilf", address_of<Float>(&::ceilf)},
        {"ceil", address_of<Double>(&::ceil)},
        {"truncf", address_of<Float>(&::truncf)},
        {"trunc", address_of<Double>(&::trunc)},
        {"rintf", address_of<Float>(&::rintf)},
        {"rint", address_of<Double>(&::rint)},
        {"nearbyintf", address_of<Float>(&::nearbyintf)},
        {"nearbyint", address_of<Double>(&::nearbyint)},
        {"roundf", address_of<Float>(&::roundf)},
        {"round", address_of<Double>(&::round)},
        {"sqrtf", address_of<Float>(&::sqrtf)},
        {"sqrt", address_of<Double>(&::sqrt)},
        {"ldexpf", address_of<float(float, int)>(&::ldexpf)},
        {"ldexp", address_of<double(double, int)>(&::ldexp)},
        {"frexpf", address_of<float(float, int*)>(&::frexpf)},
        {"frexp", address_of<double(double, int*)>(&::frexp)},
        {"exp2f", address_of<Float>(&::exp2f)},
        {"exp2", address_of<Double>(&::exp2)},
        {"log2f", address_of<Float>(&::log2f)},
        {"log2", address_of<Double>(&::log2)},
        {"expf", address_of<Float>(&::expf)},
        {"exp", address_of<Double>(&::exp)},
        {"logf", address_of<Float>(&::logf)},
        {"log", address_of<Double>(&::log)},
        {"__extendhfsf2", address_of(&__extendhfsf2)},
        {"__truncsfhf2", address_of(&__truncsfhf2)},
        {"__truncdfhf2", address_of(&__truncdfhf2)},
        {"__divti3", address_of(&__divti3)},
        {"__modti3", address_of(&__modti3)},
        {"__udivti3", address_of(&__udivti3)},
        {"__umodti3", address_of(&__umodti3)},
    };
}

}  // namespace

void* runtime_symbol(std::string_view name) {
    // Leaked: kernels may be loaded while the process exits.
    static const auto* const all = new Symbols(symbols());
    const auto found = all->find(name);
    return found == all->end() ? nullptr : found->second;
}

}  // namespace polder::compiler
