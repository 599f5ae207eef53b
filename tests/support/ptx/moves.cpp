// mov in all its forms, with the special registers; addresses of state spaces as generic ones, and back.
#include "block.h"
#include "operation.h"

#include <array>
#include <chrono>

namespace polder::ptx {
namespace {

template <class T>
bool run_move(Thread& t, const Instruction& i) {
    t.set(i.d, t.get<T>(i.a));
    return true;
}
bool run_move_predicate(Thread& t, const Instruction& i) {
    t.set(i.d, static_cast<uint8_t>(t.get<uint8_t>(i.a) != 0));
    return true;
}
bool run_address(Thread& t, const Instruction& i) {
    t.set(i.d, t.get<uint64_t>(i.a) + static_cast<uint64_t>(i.immediate));
    return true;
}

const std::vector<uint32_t>& slots_of(const Instruction& i) { return static_cast<const Slots*>(i.more)->slots; }

// The parts have 64 / count or 32 / count bits: `immediate`.
bool run_pack(Thread& t, const Instruction& i) {
    uint64_t whole = 0;
    unsigned shift = 0;
    for (const uint32_t slot : slots_of(i)) {
        whole |= (t.r[slot] & ((uint64_t{1} << i.immediate) - 1)) << shift;
        shift += static_cast<unsigned>(i.immediate);
    }
    t.set(i.d, whole);
    return true;
}
bool run_unpack(Thread& t, const Instruction& i) {
    uint64_t whole = t.get<uint64_t>(i.a);
    for (const uint32_t slot : slots_of(i)) {
        t.set(slot, whole & ((uint64_t{1} << i.immediate) - 1));
        whole >>= i.immediate;
    }
    return true;
}

void decode_vector(Line& line, Type type, bool packs) {
    const Operand& list = line.operand(packs ? 1 : 0);
    const unsigned bytes = bytes_of(type) / static_cast<unsigned>(std::max<size_t>(1, list.parts.size()));
    const Type part = bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : Type::b32;
    if (bytes_of(type) < 4 || bytes * list.parts.size() != bytes_of(type) || line.count() != 2)
        return line.refuse();
    Slots& slots = line.function().made().lists.emplace_back();
    for (const Operand& operand : list.parts)
        slots.slots.push_back(packs ? line.source(operand, part) : line.target(operand, part));
    Instruction made{.run = packs ? run_pack : run_unpack, .immediate = 8 * bytes, .more = &slots};
    if (packs)
        made.d = line.target(0, type);
    else
        made.a = line.source(1, type);
    line.emit(made);
}

// --- special registers ---

using Special = uint64_t (*)(const Thread&);

uint64_t now_ns() { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); }
uint32_t lane_of(const Thread& t) { return t.linear % 32; }

template <int d>
uint64_t thread_id(const Thread& t) {
    return t.id[d];
}
template <int d>
uint64_t block_size(const Thread& t) {
    return t.block->launch->block[d];
}
template <int d>
uint64_t block_id(const Thread& t) {
    return t.block->id[d];
}
template <int d>
uint64_t grid_size(const Thread& t) {
    return t.block->launch->grid[d];
}

struct Named {
    std::string_view name;
    Special read;
};
constexpr std::array specials{
    Named{"%tid.x", thread_id<0>},
    Named{"%tid.y", thread_id<1>},
    Named{"%tid.z", thread_id<2>},
    Named{"%ntid.x", block_size<0>},
    Named{"%ntid.y", block_size<1>},
    Named{"%ntid.z", block_size<2>},
    Named{"%ctaid.x", block_id<0>},
    Named{"%ctaid.y", block_id<1>},
    Named{"%ctaid.z", block_id<2>},
    Named{"%nctaid.x", grid_size<0>},
    Named{"%nctaid.y", grid_size<1>},
    Named{"%nctaid.z", grid_size<2>},
    Named{"%laneid", [](const Thread& t) { return uint64_t{lane_of(t)}; }},
    Named{"%warpid", [](const Thread& t) { return uint64_t{t.linear / 32}; }},
    Named{"%nwarpid",
          [](const Thread& t) {
              const auto& block = t.block->launch->block;
              return (uint64_t{block[0]} * block[1] * block[2] + 31) / 32;
          }},
    Named{"%lanemask_eq", [](const Thread& t) { return uint64_t{1} << lane_of(t); }},
    Named{"%lanemask_lt", [](const Thread& t) { return (uint64_t{1} << lane_of(t)) - 1; }},
    Named{"%lanemask_le", [](const Thread& t) { return (uint64_t{2} << lane_of(t)) - 1; }},
    Named{"%lanemask_gt", [](const Thread& t) { return ~((uint64_t{2} << lane_of(t)) - 1) & 0xffffffff; }},
    Named{"%lanemask_ge", [](const Thread& t) { return ~((uint64_t{1} << lane_of(t)) - 1) & 0xffffffff; }},
    Named{"%smid", [](const Thread&) { return uint64_t{0}; }},
    Named{"%nsmid", [](const Thread&) { return uint64_t{1}; }},
    Named{"%gridid", [](const Thread&) { return uint64_t{0}; }},
    Named{"%clock", [](const Thread&) { return now_ns(); }},
    Named{"%clock64", [](const Thread&) { return now_ns(); }},
    Named{"%globaltimer", [](const Thread&) { return now_ns(); }},
    Named{"%dynamic_smem_size", [](const Thread& t) { return t.block->launch->dynamic_bytes; }},
    Named{"%total_smem_size", [](const Thread& t) { return t.block->launch->shared_bytes; }},
};

bool run_special(Thread& t, const Instruction& i) {
    t.set(i.d, reinterpret_cast<Special>(const_cast<void*>(i.more))(t));
    return true;
}

Handler move_of(Type type) {
    switch (bytes_of(type)) {
    case 1: return type == Type::pred ? run_move_predicate : nullptr;
    case 2: return run_move<uint16_t>;
    case 4: return run_move<uint32_t>;
    case 8: return run_move<uint64_t>;
    default: return nullptr;
    }
}

void decode_mov(Line& line) {
    using Kind = Operand::Kind;
    const Type type = line.take_type();
    const Operand& from = line.operand(1);
    if (line.operand(0).kind == Kind::list || from.kind == Kind::list)
        return decode_vector(line, type, from.kind == Kind::list);
    if (from.kind == Kind::name && from.name.starts_with('%')) {
        for (const Named& one : specials)
            if (one.name == from.name)
                return line.emit(
                    {.run = run_special, .d = line.target(0, type), .more = reinterpret_cast<const void*>(one.read)});
        return line.refuse("unknown register " + std::string(from.name));
    }
    if (from.kind == Kind::name || from.kind == Kind::variable) {
        if (bytes_of(type) != 8)
            return line.refuse();
        const Place place = line.place(1, Space::generic);
        return line.emit({.run = run_address, .d = line.target(0, type), .a = place.base, .immediate = place.offset});
    }
    line.emit(move_of(type), type, 1);
}

// --- generic addresses ---

uint64_t window_of(Space space, bool is_entry) {
    switch (space) {
    case Space::shared: return shared_window;
    case Space::local: return local_window;
    case Space::parameter: return is_entry ? parameter_window : local_window;
    default: return 0;
    }
}

void decode_cvta(Line& line) {
    const bool is_to = line.take("to");
    const auto space = line.take_space();
    const Type type = line.take_type();
    if (!space || bytes_of(type) != 8 || line.count() != 2)
        return line.refuse();
    const uint64_t window = window_of(*space, line.function().text().is_entry);
    Place from;
    if (line.operand(1).kind == Operand::Kind::reg || line.operand(1).kind == Operand::Kind::integer)
        from.base = line.source(1, type);
    else
        from = line.place(1, *space);
    line.emit({.run = run_address,
               .d = line.target(0, type),
               .a = from.base,
               .immediate = static_cast<int64_t>(static_cast<uint64_t>(from.offset) + (is_to ? ~window + 1 : window))});
}

// `immediate`: the window of the space; 0: global memory.
bool run_isspacep(Thread& t, const Instruction& i) {
    const uint64_t window = t.get<uint64_t>(i.a) & ~(window_bytes - 1);
    const auto wanted = static_cast<uint64_t>(i.immediate);
    const bool is_other = window == shared_window || window == local_window || window == parameter_window;
    t.set(i.d, static_cast<uint8_t>(wanted != 0 ? window == wanted : !is_other));
    return true;
}
void decode_isspacep(Line& line) {
    const auto space = line.take_space();
    if (!space || *space == Space::constant || line.count() != 2)
        return line.refuse();
    line.emit({.run = run_isspacep,
               .d = line.target(0, Type::pred),
               .a = line.source(1, Type::b64),
               .immediate = static_cast<int64_t>(window_of(*space, true))});
}

}  // namespace

void add_moves(Table& table) {
    table["mov"] = decode_mov;
    table["cvta"] = decode_cvta;
    table["isspacep"] = decode_isspacep;
}

}  // namespace polder::ptx
