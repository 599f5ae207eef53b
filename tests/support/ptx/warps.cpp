// Instructions of a warp. A thread stores its operands and waits; when all members of its mask have come, the operation is executed for
// all of them (block.h).
#include "warps.h"

#include "operators.h"
#include "thread.h"

#include <array>
#include <utility>

namespace polder::ptx {
namespace {

// What a register of a thread that takes no part holds, in shfl: anything, but never by accident the right value.
constexpr uint32_t undefined = 0xbadc0de5;

uint32_t lane_of(const Thread& t) { return t.linear % 32; }

bool run_meeting(Thread& t, const Instruction& i) {
    t.members = t.get<uint32_t>(i.b);
    t.waits_at = &i;
    t.state = Thread::State::at_warp_operation;
    return false;
}
bool run_activemask(Thread& t, const Instruction& i) {
    t.waits_at = &i;
    t.state = Thread::State::at_convergence;
    return false;
}

uint32_t lanes_of(std::span<Thread* const> threads) {
    uint32_t lanes = 0;
    for (const Thread* thread : threads)
        lanes |= 1u << lane_of(*thread);
    return lanes;
}

constexpr Meeting active{[](std::span<Thread* const> threads) {
    for (Thread* thread : threads)
        thread->set(thread->waits_at->d, lanes_of(threads));
}};
constexpr Meeting only_wait{[](std::span<Thread* const>) {}};

// --- votes ---

// `immediate`: 1 when the predicate is inverted.
uint32_t votes_of(std::span<Thread* const> threads) {
    uint32_t votes = 0;
    for (const Thread* thread : threads)
        if ((thread->get<uint8_t>(thread->waits_at->a) != 0) != (thread->waits_at->immediate != 0))
            votes |= 1u << lane_of(*thread);
    return votes;
}
struct Ballot {
    static uint32_t of(uint32_t votes, uint32_t) { return votes; }
};
struct All {
    static uint32_t of(uint32_t votes, uint32_t lanes) { return votes == lanes ? 1 : 0; }
};
struct Any {
    static uint32_t of(uint32_t votes, uint32_t) { return votes != 0 ? 1 : 0; }
};
struct Uniform {
    static uint32_t of(uint32_t votes, uint32_t lanes) { return votes == lanes || votes == 0 ? 1 : 0; }
};
template <class Operation>
void vote(std::span<Thread* const> threads) {
    const uint32_t result = Operation::of(votes_of(threads), lanes_of(threads));
    for (Thread* thread : threads)
        thread->set(thread->waits_at->d, result);
}
constexpr Meeting ballot{vote<Ballot>}, vote_all{vote<All>}, vote_any{vote<Any>}, vote_uniform{vote<Uniform>};

void decode_vote(Line& line) {
    const std::string_view mode = line.take_one({"ballot", "all", "any", "uni"});
    if (!line.take("sync") || mode.empty() || line.count() != 3)
        return line.refuse();
    const Type type = line.take_type();
    if (type != (mode == "ballot" ? Type::b32 : Type::pred))
        return line.refuse();
    Operand predicate = line.operand(1);
    const bool is_inverted = std::exchange(predicate.is_inverted, false);
    line.emit({.run = run_meeting,
               .d = line.target(0, type),
               .a = line.source(predicate, Type::pred),
               .b = line.source(2, Type::b32),
               .immediate = is_inverted ? 1 : 0,
               .more = mode == "ballot" ? &ballot
                       : mode == "all"  ? &vote_all
                       : mode == "any"  ? &vote_any
                                        : &vote_uniform});
}

// --- shuffles ---

enum class Mode : uint8_t { up, down, butterfly, index };

struct Source {
    uint32_t lane;
    bool is_in_range;
};
template <Mode mode>
Source source_of(uint32_t lane, uint32_t b, uint32_t c) {
    const uint32_t segment = c >> 8 & 31, lowest = lane & segment, highest = lowest | (c & 31 & ~segment);
    const int value = static_cast<int>(b & 31), of = static_cast<int>(lane);
    const int wanted = mode == Mode::up          ? of - value
                       : mode == Mode::down      ? of + value
                       : mode == Mode::butterfly ? (of ^ value)
                                                 : static_cast<int>(lowest | (b & 31 & ~segment));
    const bool is_in_range =
        mode == Mode::up ? wanted >= static_cast<int>(highest) : wanted <= static_cast<int>(highest);
    return {is_in_range ? static_cast<uint32_t>(wanted) : lane, is_in_range};
}

// d|p, a, b, c: p is in `count`, b in `c`, c in `immediate`.
template <Mode mode>
void shuffle(std::span<Thread* const> threads) {
    std::array<uint32_t, 32> values;
    values.fill(undefined);
    for (const Thread* thread : threads)
        values[lane_of(*thread)] = thread->get<uint32_t>(thread->waits_at->a);
    for (Thread* thread : threads) {
        const Instruction& i = *thread->waits_at;
        const Source source = source_of<mode>(lane_of(*thread), thread->get<uint32_t>(i.c),
                                              thread->get<uint32_t>(static_cast<uint32_t>(i.immediate)));
        thread->set(i.count, static_cast<uint8_t>(source.is_in_range));
        thread->set(i.d, values[source.lane]);
    }
}
constexpr Meeting shuffle_up{shuffle<Mode::up>}, shuffle_down{shuffle<Mode::down>},
    shuffle_butterfly{shuffle<Mode::butterfly>}, shuffle_index{shuffle<Mode::index>};

// The first result and, after |, the predicate.
struct Results {
    uint32_t d;
    uint32_t p;
};
Results results_of(Line& line, Type type) {
    const Operand& results = line.operand(0);
    if (results.kind != Operand::Kind::pair)
        return {line.target(results, type), line.function().sink()};
    return {line.target(results.parts[0], type), line.target(results.parts[1], Type::pred)};
}

void decode_shfl(Line& line) {
    const std::string_view mode = line.take_one({"up", "down", "bfly", "idx"});
    if (!line.take("sync") || mode.empty() || line.take_type() != Type::b32 || line.count() != 5)
        return line.refuse();
    const Results results = results_of(line, Type::b32);
    line.emit({.run = run_meeting,
               .d = results.d,
               .a = line.source(1, Type::b32),
               .b = line.source(4, Type::b32),
               .c = line.source(2, Type::b32),
               .immediate = line.source(3, Type::b32),
               .more = mode == "up"     ? &shuffle_up
                       : mode == "down" ? &shuffle_down
                       : mode == "bfly" ? &shuffle_butterfly
                                        : &shuffle_index,
               .count = results.p});
}

// --- equal values ---

template <class T, bool all>
void match(std::span<Thread* const> threads) {
    std::array<uint32_t, 32> masks{};
    for (const Thread* one : threads)
        for (const Thread* other : threads)
            if (one->get<T>(one->waits_at->a) == other->get<T>(other->waits_at->a))
                masks[lane_of(*one)] |= 1u << lane_of(*other);
    for (Thread* thread : threads) {
        const uint32_t mask = masks[lane_of(*thread)];
        const bool is_all = mask == lanes_of(threads);
        thread->set(thread->waits_at->count, static_cast<uint8_t>(is_all));
        thread->set(thread->waits_at->d, all && !is_all ? 0 : mask);
    }
}
constexpr Meeting match_any_32{match<uint32_t, false>}, match_any_64{match<uint64_t, false>},
    match_all_32{match<uint32_t, true>}, match_all_64{match<uint64_t, true>};

void decode_match(Line& line) {
    const bool is_all = line.take_one({"all", "any"}) == "all";
    const bool is_sync = line.take("sync");
    const Type type = line.take_type();
    if (!is_sync || (type != Type::b32 && type != Type::b64) || line.count() != 3)
        return line.refuse();
    const bool is_wide = type == Type::b64;
    const Results results = results_of(line, Type::b32);
    line.emit({.run = run_meeting,
               .d = results.d,
               .a = line.source(1, type),
               .b = line.source(2, Type::b32),
               .more = is_all ? (is_wide ? &match_all_64 : &match_all_32) : (is_wide ? &match_any_64 : &match_any_32),
               .count = results.p});
}

// --- reductions ---

struct Add {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
    }
};
template <class T, class Operation>
void reduce(std::span<Thread* const> threads) {
    auto result = threads[0]->get<T>(threads[0]->waits_at->a);
    for (const Thread* thread : threads.subspan(1))
        result = Operation::of(result, thread->get<T>(thread->waits_at->a));
    for (Thread* thread : threads)
        thread->set(thread->waits_at->d, result);
}
template <class T, class Operation>
constexpr Meeting reduction{reduce<T, Operation>};

const Meeting* reduction_of(std::string_view operation, Type type) {
    if (type == Type::b32)
        return operation == "and"   ? &reduction<uint32_t, And>
               : operation == "or"  ? &reduction<uint32_t, Or>
               : operation == "xor" ? &reduction<uint32_t, Xor>
                                    : nullptr;
    if (type != Type::u32 && type != Type::s32)
        return nullptr;
    const bool has_sign = type == Type::s32;
    if (operation == "add")
        return has_sign ? &reduction<int32_t, Add> : &reduction<uint32_t, Add>;
    if (operation == "min")
        return has_sign ? &reduction<int32_t, Min> : &reduction<uint32_t, Min>;
    if (operation == "max")
        return has_sign ? &reduction<int32_t, Max> : &reduction<uint32_t, Max>;
    return nullptr;
}

void decode_redux(Line& line) {
    const std::string_view operation = line.take_one({"add", "min", "max", "and", "or", "xor"});
    const bool is_sync = line.take("sync");
    const Type type = line.take_type();
    const Meeting* const meeting = reduction_of(operation, type);
    if (!is_sync || meeting == nullptr || line.count() != 3)
        return line.refuse();
    line.emit({.run = run_meeting,
               .d = line.target(0, type),
               .a = line.source(1, type),
               .b = line.source(2, Type::b32),
               .more = meeting});
}

// The lowest lane is elected.
constexpr Meeting elect{[](std::span<Thread* const> threads) {
    for (Thread* thread : threads) {
        thread->set(thread->waits_at->count, static_cast<uint8_t>(thread == threads[0]));
        thread->set(thread->waits_at->d, lane_of(*threads[0]));
    }
}};

}  // namespace

void decode_warp_barrier(Line& line) {
    line.take("warp");
    if (!line.take("sync") || line.count() != 1)
        return line.refuse();
    line.emit({.run = run_meeting, .b = line.source(0, Type::b32), .more = &only_wait});
}

void add_warps(Table& table) {
    table["activemask"] = [](Line& line) {
        if (line.take_type() != Type::b32 || line.count() != 1)
            return line.refuse();
        line.emit({.run = run_activemask, .d = line.target(0, Type::b32), .more = &active});
    };
    table["vote"] = decode_vote;
    table["shfl"] = decode_shfl;
    table["match"] = decode_match;
    table["redux"] = decode_redux;
    table["elect"] = [](Line& line) {
        if (!line.take("sync") || line.count() != 2)
            return line.refuse();
        const Results results = results_of(line, Type::b32);
        line.emit(
            {.run = run_meeting, .d = results.d, .b = line.source(1, Type::b32), .more = &elect, .count = results.p});
    };
}

}  // namespace polder::ptx
