// Loads and stores: of each space, width and sign; of vectors; with the orders of the memory model. An access must be
// aligned to its whole size.
#include "operation.h"

#include <atomic>

namespace polder::ptx {
namespace {

template <Space space>
std::byte* pointer_of(Thread& t, const Instruction& i, uint64_t bytes, Access access) {
    const uint64_t address = t.get<uint64_t>(i.a) + static_cast<uint64_t>(i.immediate);
    if constexpr (space == Space::global)
        return t.global_pointer(address, bytes, access);
    else
        return t.pointer(space, address, bytes, access);
}

template <Space space, class T, bool is_ordered>
bool run_load(Thread& t, const Instruction& i) {
    const std::byte* const from = pointer_of<space>(t, i, sizeof(T), Access::read);
    if (from == nullptr)
        return false;
    T value;
    if constexpr (is_ordered)
        value = std::atomic_ref(*reinterpret_cast<T*>(const_cast<std::byte*>(from))).load();
    else
        std::memcpy(&value, from, sizeof value);
    t.set(i.d, value);
    return true;
}
template <Space space, class T, bool is_ordered>
bool run_store(Thread& t, const Instruction& i) {
    std::byte* const to = pointer_of<space>(t, i, sizeof(T), Access::write);
    if (to == nullptr)
        return false;
    const auto value = t.get<T>(i.b);
    if constexpr (is_ordered)
        std::atomic_ref(*reinterpret_cast<T*>(to)).store(value);
    else
        std::memcpy(to, &value, sizeof value);
    return true;
}

const std::vector<uint32_t>& slots_of(const Instruction& i) { return static_cast<const Slots*>(i.more)->slots; }

template <Space space, class T>
bool run_load_vector(Thread& t, const Instruction& i) {
    const std::byte* from = pointer_of<space>(t, i, sizeof(T) * i.count, Access::read);
    if (from == nullptr)
        return false;
    for (const uint32_t slot : slots_of(i)) {
        T value;
        std::memcpy(&value, from, sizeof value);
        t.set(slot, value);
        from += sizeof value;
    }
    return true;
}
template <Space space, class T>
bool run_store_vector(Thread& t, const Instruction& i) {
    std::byte* to = pointer_of<space>(t, i, sizeof(T) * i.count, Access::write);
    if (to == nullptr)
        return false;
    for (const uint32_t slot : slots_of(i)) {
        const auto value = t.get<T>(slot);
        std::memcpy(to, &value, sizeof value);
        to += sizeof value;
    }
    return true;
}

struct Handlers {
    Handler load = nullptr;
    Handler store = nullptr;
};

template <Space space, class T>
Handlers handlers(bool is_vector, bool is_ordered) {
    if (is_vector)
        return {run_load_vector<space, T>, run_store_vector<space, T>};
    if (is_ordered)
        return {run_load<space, T, true>, run_store<space, T, true>};
    return {run_load<space, T, false>, run_store<space, T, false>};
}

template <Space space>
Handlers handlers(Type type, bool is_vector, bool is_ordered) {
    switch (type) {
    case Type::s8: return handlers<space, int8_t>(is_vector, is_ordered);
    case Type::s16: return handlers<space, int16_t>(is_vector, is_ordered);
    case Type::s32: return handlers<space, int32_t>(is_vector, is_ordered);
    default: break;
    }
    switch (bytes_of(type)) {
    case 1: return handlers<space, uint8_t>(is_vector, is_ordered);
    case 2: return handlers<space, uint16_t>(is_vector, is_ordered);
    case 4: return handlers<space, uint32_t>(is_vector, is_ordered);
    case 8: return handlers<space, uint64_t>(is_vector, is_ordered);
    default: return {};
    }
}

Handlers handlers(Space space, Type type, bool is_vector, bool is_ordered) {
    switch (space) {
    case Space::generic: return handlers<Space::generic>(type, is_vector, is_ordered);
    case Space::global:
    case Space::constant: return handlers<Space::global>(type, is_vector, is_ordered);
    case Space::shared: return handlers<Space::shared>(type, is_vector, is_ordered);
    case Space::local: return handlers<Space::local>(type, is_vector, is_ordered);
    case Space::parameter: return handlers<Space::parameter>(type, is_vector, is_ordered);
    }
    return {};
}

// Hints for caches, scopes and weak accesses change nothing here.
bool take_order(Line& line) {
    const bool is_ordered = !line.take_one({"volatile", "relaxed", "acquire", "release"}).empty();
    line.take("weak");
    line.take("mmio");
    line.take_one({"cta", "cluster", "gpu", "sys"});
    line.take_one({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"});
    line.take("nc");
    line.take_one({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
    line.take_one({"L2::64B", "L2::128B", "L2::256B"});
    return is_ordered;
}

void decode_access(Line& line, bool is_load) {
    const bool is_ordered = take_order(line);
    const Space named = line.take_space().value_or(Space::generic);
    const std::string_view vector = line.take_one({"v2", "v4", "v8"});
    const Type type = line.take_type();
    if (line.count() != 2 || type == Type::pred || (named == Space::constant && !is_load))
        return line.refuse();
    const Place place = line.place(is_load ? 1 : 0, named);
    if (named != Space::generic && named != Space::parameter && place.space != named)
        return line.refuse("a variable of another space");
    // A name without a space says what space it is in; its address is not a generic one.
    const Space space = named == Space::generic || named == Space::parameter ? place.space : named;
    if (!is_load && space == Space::parameter)
        return line.refuse("a store to a parameter of a kernel");
    const Operand& value = line.operand(is_load ? 0 : 1);
    const bool is_vector = !vector.empty();
    const Handlers both = handlers(space, type, is_vector, is_ordered);
    Instruction made{.run = is_load ? both.load : both.store, .a = place.base, .immediate = place.offset};
    if (made.run == nullptr)
        return line.refuse();
    if (is_vector) {
        Slots& slots = line.function().made().lists.emplace_back();
        for (const Operand& part : value.parts)
            slots.slots.push_back(is_load ? line.target(part, type) : line.source(part, type));
        if (slots.slots.size() != static_cast<size_t>(vector[1] - '0'))
            return line.refuse("a vector of another size");
        made.more = &slots;
        made.count = static_cast<uint32_t>(slots.slots.size());
    } else if (is_load) {
        made.d = line.target(value, type);
    } else {
        made.b = line.source(value, type);
    }
    line.emit(made);
}

}  // namespace

void add_accesses(Table& table) {
    table["ld"] = [](Line& line) { decode_access(line, true); };
    table["ldu"] = [](Line& line) { decode_access(line, true); };
    table["st"] = [](Line& line) { decode_access(line, false); };
    // Only a hint.
    const Decode prefetch = [](Line& line) {
        line.take_space();
        line.take_one({"L1", "L2"});
    };
    table["prefetch"] = prefetch;
    table["prefetchu"] = prefetch;
}

}  // namespace polder::ptx
