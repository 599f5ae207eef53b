// Logic, shifts, and fields of bits. Shifts by more than the width give what a shift by the width gives.
#include "operation.h"
#include "operators.h"

#include <algorithm>
#include <bit>

namespace polder::ptx {
namespace {

struct Not {
    template <class T>
    static T of(T a) {
        return static_cast<T>(~a);
    }
};
struct CNot {
    template <class T>
    static T of(T a) {
        return a == 0 ? 1 : 0;
    }
};

template <class Operation>
void decode_logic(Line& line) {
    const Type type = line.take_type();
    line.emit(binary_of_bits<Operation>(type), type, 2);
}

// The amount has 32 bits whatever the type is.
template <class T>
bool run_shl(Thread& t, const Instruction& i) {
    const auto amount = t.get<uint32_t>(i.b);
    t.set(i.d, amount >= 8 * sizeof(T) ? T{0} : static_cast<T>(uint64_t{t.get<T>(i.a)} << amount));
    return true;
}
template <class T>
bool run_shr(Thread& t, const Instruction& i) {
    const uint32_t amount = std::min<uint32_t>(t.get<uint32_t>(i.b), 8 * sizeof(T));
    const auto a = t.get<T>(i.a);
    if (amount == 8 * sizeof(T))
        t.set(i.d, a < T{1} && a != T{0} ? static_cast<T>(~T{0}) : T{0});
    else
        t.set(i.d, static_cast<T>(a >> amount));
    return true;
}

void decode_shift(Line& line, Handler handler, Type type) {
    if (handler == nullptr || line.count() != 3)
        return line.refuse();
    line.emit({.run = handler, .d = line.target(0, type), .a = line.source(1, type), .b = line.source(2, Type::b32)});
}

void decode_shl(Line& line) {
    const Type type = line.take_type();
    const unsigned bytes = bytes_of(type);
    decode_shift(line, bytes == 2 ? run_shl<uint16_t> : bytes == 4 ? run_shl<uint32_t> : run_shl<uint64_t>, type);
}
Handler shr_of(Type type) {
    switch (type) {
    case Type::b16:
    case Type::u16: return run_shr<uint16_t>;
    case Type::b32:
    case Type::u32: return run_shr<uint32_t>;
    case Type::b64:
    case Type::u64: return run_shr<uint64_t>;
    case Type::s16: return run_shr<int16_t>;
    case Type::s32: return run_shr<int32_t>;
    case Type::s64: return run_shr<int64_t>;
    default: return nullptr;
    }
}

// A funnel shift of the 64 bits of b and a.
template <bool left, bool wraps>
bool run_shf(Thread& t, const Instruction& i) {
    const uint64_t both = uint64_t{t.get<uint32_t>(i.b)} << 32 | t.get<uint32_t>(i.a);
    const auto given = t.get<uint32_t>(i.c);
    const uint32_t amount = wraps ? given & 31 : std::min(given, 32u);
    t.set(i.d, static_cast<uint32_t>(left ? (both << amount) >> 32 : both >> amount));
    return true;
}
void decode_shf(Line& line) {
    const bool left = line.take_one({"l", "r"}) == "l", wraps = line.take_one({"wrap", "clamp"}) == "wrap";
    const Type type = line.take_type();
    line.emit(left ? (wraps ? run_shf<true, true> : run_shf<true, false>)
                   : (wraps ? run_shf<false, true> : run_shf<false, false>),
              type, 3);
}

// Counts have 32 bits.
template <class T, class Operation>
bool run_count(Thread& t, const Instruction& i) {
    t.set(i.d, static_cast<uint32_t>(Operation::of(t.get<T>(i.a))));
    return true;
}
struct PopulationCount {
    template <class T>
    static int of(T a) {
        return std::popcount(a);
    }
};
struct LeadingZeros {
    template <class T>
    static int of(T a) {
        return std::countl_zero(a);
    }
};
template <class Operation>
void decode_count(Line& line) {
    const Type type = line.take_type();
    if (bytes_of(type) < 4 || line.count() != 2)
        return line.refuse();
    line.emit({.run = bytes_of(type) == 8 ? run_count<uint64_t, Operation> : run_count<uint32_t, Operation>,
               .d = line.target(0, Type::b32),
               .a = line.source(1, type)});
}

// The most significant bit that is not a copy of the sign; all bits set when there is none.
template <class T, bool as_shift>
bool run_bfind(Thread& t, const Instruction& i) {
    using U = std::make_unsigned_t<T>;
    auto a = static_cast<U>(t.get<T>(i.a));
    if (std::is_signed_v<T> && t.get<T>(i.a) < T{0})
        a = static_cast<U>(~a);
    constexpr uint32_t bits = 8 * sizeof(T);
    const uint32_t zeros = static_cast<uint32_t>(std::countl_zero(a));
    const uint32_t position = bits - 1 - zeros;
    t.set(i.d, a == 0 ? ~0u : as_shift ? zeros : position);
    return true;
}
template <bool as_shift>
Handler bfind_of(Type type) {
    switch (type) {
    case Type::u32: return run_bfind<uint32_t, as_shift>;
    case Type::u64: return run_bfind<uint64_t, as_shift>;
    case Type::s32: return run_bfind<int32_t, as_shift>;
    case Type::s64: return run_bfind<int64_t, as_shift>;
    default: return nullptr;
    }
}

struct Reverse {
    template <class T>
    static T of(T a) {
        T reversed = 0;
        for (size_t bit = 0; bit < 8 * sizeof(T); ++bit)
            reversed |= static_cast<T>((a >> bit & 1) << (8 * sizeof(T) - 1 - bit));
        return reversed;
    }
};

// Extracts `length` bits from `position`; those beyond the end are copies of the sign, or zero.
template <class T>
bool run_bfe(Thread& t, const Instruction& i) {
    constexpr uint32_t bits = 8 * sizeof(T);
    const uint32_t position = t.get<uint32_t>(i.b) & 0xff, length = t.get<uint32_t>(i.c) & 0xff;
    const auto a = t.get<T>(i.a);
    using U = std::make_unsigned_t<T>;
    const auto raw = static_cast<U>(a);
    const uint32_t last = std::min(position + length - (length != 0 ? 1 : 0), bits - 1);
    const bool sign = std::is_signed_v<T> && length != 0 && (raw >> last & 1) != 0;
    U result = 0;
    for (uint32_t bit = 0; bit < bits; ++bit) {
        const bool is_set = bit < length && position + bit < bits ? (raw >> (position + bit) & 1) != 0 : sign;
        result |= static_cast<U>(U{is_set} << bit);
    }
    t.set(i.d, static_cast<T>(result));
    return true;
}
Handler bfe_of(Type type) {
    switch (type) {
    case Type::u32: return run_bfe<uint32_t>;
    case Type::u64: return run_bfe<uint64_t>;
    case Type::s32: return run_bfe<int32_t>;
    case Type::s64: return run_bfe<int64_t>;
    default: return nullptr;
    }
}

// Inserts bits of a into b; the amounts are c and the slot in `immediate`.
template <class T>
bool run_bfi(Thread& t, const Instruction& i) {
    constexpr uint32_t bits = 8 * sizeof(T);
    const uint32_t position = t.get<uint32_t>(i.c) & 0xff;
    const uint32_t length = t.get<uint32_t>(static_cast<uint32_t>(i.immediate)) & 0xff;
    T result = t.get<T>(i.b);
    const auto a = t.get<T>(i.a);
    for (uint32_t bit = 0; bit < length && position + bit < bits; ++bit) {
        const T mask = static_cast<T>(T{1} << (position + bit));
        result = static_cast<T>((result & ~mask) | ((a >> bit & 1) != 0 ? mask : T{0}));
    }
    t.set(i.d, result);
    return true;
}
void decode_bfi(Line& line) {
    const Type type = line.take_type();
    if (bytes_of(type) < 4 || line.count() != 5)
        return line.refuse();
    line.emit({.run = bytes_of(type) == 8 ? run_bfi<uint64_t> : run_bfi<uint32_t>,
               .d = line.target(0, type),
               .a = line.source(1, type),
               .b = line.source(2, type),
               .c = line.source(3, Type::b32),
               .immediate = line.source(4, Type::b32)});
}

// One result bit for each of the eight combinations of three bits.
bool run_lop3(Thread& t, const Instruction& i) {
    const auto a = t.get<uint32_t>(i.a), b = t.get<uint32_t>(i.b), c = t.get<uint32_t>(i.c);
    uint32_t result = 0;
    for (int combination = 0; combination < 8; ++combination)
        if ((i.immediate >> combination & 1) != 0)
            result |= ((combination & 4) != 0 ? a : ~a) & ((combination & 2) != 0 ? b : ~b) &
                      ((combination & 1) != 0 ? c : ~c);
    t.set(i.d, result);
    return true;
}
void decode_lop3(Line& line) {
    const Type type = line.take_type();
    if (type != Type::b32 || line.count() != 5 || line.operand(4).kind != Operand::Kind::integer)
        return line.refuse();
    line.emit({.run = run_lop3,
               .d = line.target(0, type),
               .a = line.source(1, type),
               .b = line.source(2, type),
               .c = line.source(3, type),
               .immediate = static_cast<int64_t>(line.operand(4).bits)});
}

// --- prmt: four bytes of the eight of b and a ---

uint32_t byte_of(uint64_t bytes, uint32_t selector) {
    const auto byte = static_cast<uint8_t>(bytes >> 8 * (selector & 7));
    return (selector & 8) != 0 ? (byte >> 7) * 0xffu : byte;
}

// The selectors of the modes, of which c has the lowest two bits; in the order of the modes below.
constexpr uint32_t mode_selectors[][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
    {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
    {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
    {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
    {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
    {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
};

bool run_prmt(Thread& t, const Instruction& i) {
    const uint64_t bytes = uint64_t{t.get<uint32_t>(i.b)} << 32 | t.get<uint32_t>(i.a);
    const auto c = t.get<uint32_t>(i.c);
    const uint32_t selectors = i.immediate < 0 ? c : mode_selectors[i.immediate][c & 3];
    uint32_t result = 0;
    for (unsigned byte = 0; byte < 4; ++byte)
        result |= byte_of(bytes, selectors >> 4 * byte & 15) << 8 * byte;
    t.set(i.d, result);
    return true;
}
void decode_prmt(Line& line) {
    const Type type = line.take_type();
    if (type != Type::b32 || line.count() != 4)
        return line.refuse();
    int64_t mode = -1, number = 0;
    for (const char* name : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) {
        if (line.take(name))
            mode = number;
        ++number;
    }
    line.emit({.run = run_prmt,
               .d = line.target(0, type),
               .a = line.source(1, type),
               .b = line.source(2, type),
               .c = line.source(3, type),
               .immediate = mode});
}

}  // namespace

void add_bits(Table& table) {
    table["and"] = decode_logic<And>;
    table["or"] = decode_logic<Or>;
    table["xor"] = decode_logic<Xor>;
    table["not"] = [](Line& line) {
        const Type type = line.take_type();
        // A predicate has one bit.
        if (type == Type::pred)
            line.emit(run_unary<uint8_t, CNot>, type, 1);
        else
            line.emit(unary_of_bits<Not>(type), type, 1);
    };
    table["cnot"] = [](Line& line) {
        const Type type = line.take_type();
        line.emit(unary_of_bits<CNot>(type), type, 1);
    };
    table["shl"] = decode_shl;
    table["shr"] = [](Line& line) {
        const Type type = line.take_type();
        decode_shift(line, shr_of(type), type);
    };
    table["shf"] = decode_shf;
    table["popc"] = decode_count<PopulationCount>;
    table["clz"] = decode_count<LeadingZeros>;
    table["bfind"] = [](Line& line) {
        const bool as_shift = line.take("shiftamt");
        const Type type = line.take_type();
        const Handler handler = as_shift ? bfind_of<true>(type) : bfind_of<false>(type);
        if (handler == nullptr || line.count() != 2)
            return line.refuse();
        line.emit({.run = handler, .d = line.target(0, Type::b32), .a = line.source(1, type)});
    };
    table["brev"] = [](Line& line) {
        const Type type = line.take_type();
        line.emit(unary_of_bits<Reverse>(type), type, 1);
    };
    table["bfe"] = [](Line& line) {
        const Type type = line.take_type();
        const Handler handler = bfe_of(type);
        if (handler == nullptr || line.count() != 4)
            return line.refuse();
        line.emit({.run = handler,
                   .d = line.target(0, type),
                   .a = line.source(1, type),
                   .b = line.source(2, Type::b32),
                   .c = line.source(3, Type::b32)});
    };
    table["bfi"] = decode_bfi;
    table["lop3"] = decode_lop3;
    table["prmt"] = decode_prmt;
}

}  // namespace polder::ptx
