// atom and red: one indivisible change of memory that other blocks, other streams and the host may change too. Every order is
// sequentially consistent here, and so is each fence.
#include "floats.h"
#include "operation.h"
#include "operators.h"

#include <atomic>

namespace polder::ptx {
namespace {

struct Add {
    template <class T>
    static T of(T a, T b) {
        if constexpr (std::is_floating_point_v<T>)
            return canonical(a + b);
        else
            return static_cast<T>(a + b);
    }
};
// Sums in memory that is not shared take subnormal numbers for zero.
struct FlushingAdd {
    static float of(float a, float b) { return flush(Add::of(flush(a), flush(b))); }
};
struct Exchange {
    template <class T>
    static T of(T, T b) {
        return b;
    }
};
struct Increment {
    static uint32_t of(uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }
};
struct Decrement {
    static uint32_t of(uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; }
};
template <class Format>
struct AddNarrow {
    static uint16_t of(uint16_t a, uint16_t b) {
        return Format::of(odd_fma(Format{a}.wide(), 1, Format{b}.wide()), Round::nearest).bits;
    }
};
// Each half is changed indivisibly, both together as well.
template <class Format>
struct AddTwo {
    static uint32_t of(uint32_t a, uint32_t b) {
        const auto half = [&](unsigned shift) {
            return uint32_t{AddNarrow<Format>::of(static_cast<uint16_t>(a >> shift), static_cast<uint16_t>(b >> shift))}
                   << shift;
        };
        return half(16) | half(0);
    }
};

template <class T>
T* place_of(Thread& t, const Instruction& i) {
    const uint64_t address = t.get<uint64_t>(i.a) + static_cast<uint64_t>(i.immediate);
    return reinterpret_cast<T*>(t.pointer(static_cast<Space>(i.count), address, sizeof(T), Access::write));
}

template <class T, class Operation>
bool run_update(Thread& t, const Instruction& i) {
    T* const place = place_of<T>(t, i);
    if (place == nullptr)
        return false;
    const std::atomic_ref memory(*place);
    const auto operand = t.get<T>(i.b);
    T before = memory.load();
    while (!memory.compare_exchange_weak(before, Operation::of(before, operand))) {
    }
    t.set(i.d, before);
    return true;
}
template <class T>
bool run_compare(Thread& t, const Instruction& i) {
    T* const place = place_of<T>(t, i);
    if (place == nullptr)
        return false;
    auto before = t.get<T>(i.b);
    std::atomic_ref(*place).compare_exchange_strong(before, t.get<T>(i.c));
    t.set(i.d, before);
    return true;
}

template <class Operation>
Handler of_bits(Type type) {
    return bytes_of(type) == 4   ? run_update<uint32_t, Operation>
           : bytes_of(type) == 8 ? run_update<uint64_t, Operation>
                                 : nullptr;
}
template <class Operation>
Handler of_order(Type type) {
    switch (type) {
    case Type::u32: return run_update<uint32_t, Operation>;
    case Type::s32: return run_update<int32_t, Operation>;
    case Type::u64: return run_update<uint64_t, Operation>;
    case Type::s64: return run_update<int64_t, Operation>;
    default: return nullptr;
    }
}
Handler addition(Type type, Space space) {
    switch (type) {
    case Type::f16: return run_update<uint16_t, AddNarrow<Half>>;
    case Type::bf16: return run_update<uint16_t, AddNarrow<BFloat>>;
    case Type::f16x2: return run_update<uint32_t, AddTwo<Half>>;
    case Type::bf16x2: return run_update<uint32_t, AddTwo<BFloat>>;
    case Type::f32: return space == Space::shared ? run_update<float, Add> : run_update<float, FlushingAdd>;
    case Type::f64: return run_update<double, Add>;
    default: return of_bits<Add>(type);
    }
}
Handler comparison(Type type) {
    return bytes_of(type) == 2   ? run_compare<uint16_t>
           : bytes_of(type) == 4 ? run_compare<uint32_t>
           : bytes_of(type) == 8 ? run_compare<uint64_t>
                                 : nullptr;
}

Handler handler_of(std::string_view operation, Type type, Space space) {
    if (operation == "add")
        return addition(type, space);
    if (operation == "cas")
        return comparison(type);
    if (operation == "exch")
        return of_bits<Exchange>(type);
    if (operation == "and")
        return of_bits<And>(type);
    if (operation == "or")
        return of_bits<Or>(type);
    if (operation == "xor")
        return of_bits<Xor>(type);
    if (operation == "min")
        return of_order<Min>(type);
    if (operation == "max")
        return of_order<Max>(type);
    if (operation == "inc" && type == Type::u32)
        return run_update<uint32_t, Increment>;
    if (operation == "dec" && type == Type::u32)
        return run_update<uint32_t, Decrement>;
    return nullptr;
}

void decode_atomic(Line& line, bool has_result) {
    line.take_one({"relaxed", "acquire", "release", "acq_rel"});
    line.take_one({"cta", "cluster", "gpu", "sys"});
    line.take("noftz");
    const Space named = line.take_space().value_or(Space::generic);
    const std::string_view operation =
        line.take_one({"add", "cas", "exch", "and", "or", "xor", "min", "max", "inc", "dec"});
    const Type type = line.take_type();
    const Handler handler = handler_of(operation, type, named);
    const size_t first = has_result ? 1 : 0;
    const bool compares = operation == "cas";
    if (handler == nullptr || line.count() != first + (compares ? 3 : 2) || (compares && !has_result) ||
        named == Space::constant || named == Space::parameter)
        return line.refuse();
    const Place place = line.place(first, named);
    Instruction made{.run = handler,
                     .d = has_result ? line.target(0, type) : line.function().sink(),
                     .a = place.base,
                     .b = line.source(first + 1, type),
                     .immediate = place.offset,
                     .count = static_cast<uint32_t>(named == Space::generic ? place.space : named)};
    if (compares)
        made.c = line.source(first + 2, type);
    line.emit(made);
}

bool run_fence(Thread&, const Instruction&) {
    // A fence, in a form that the thread sanitizer knows.
    static std::atomic<int> all{0};
    all.fetch_add(0);
    return true;
}
void decode_fence(Line& line) {
    line.take_one({"sc", "acq_rel", "acquire", "release"});
    if (line.take_one({"cta", "cluster", "gpu", "gl", "sys"}).empty() || line.count() != 0)
        return line.refuse();
    line.emit({.run = run_fence});
}

}  // namespace

void add_atomics(Table& table) {
    table["atom"] = [](Line& line) { decode_atomic(line, true); };
    table["red"] = [](Line& line) { decode_atomic(line, false); };
    table["fence"] = decode_fence;
    table["membar"] = decode_fence;
}

}  // namespace polder::ptx
