// Barriers of a block: bar and barrier, with reductions.
#include "decoder.h"
#include "thread.h"
#include "warps.h"

#include <utility>

namespace polder::ptx {
namespace {

// `b` and `c`: the number of the barrier and of its threads, 0 for all.
bool run_barrier(Thread& t, const Instruction& i) {
    t.barrier = t.get<uint32_t>(i.b);
    t.barrier_threads = t.get<uint32_t>(i.c);
    t.waits_at = &i;
    t.state = Thread::State::at_barrier;
    return false;
}

bool predicate_of(const Thread& t) {
    const bool value = t.get<uint8_t>(t.waits_at->a) != 0;
    return value != ((t.waits_at->count & 1) != 0);
}

struct Count {
    static uint32_t of(uint32_t set, uint32_t) { return set; }
};
struct All {
    static uint32_t of(uint32_t set, uint32_t all) { return set == all ? 1 : 0; }
};
struct Any {
    static uint32_t of(uint32_t set, uint32_t) { return set != 0 ? 1 : 0; }
};
template <class Operation>
void reduce(std::span<Thread* const> threads) {
    uint32_t set = 0;
    for (const Thread* thread : threads)
        set += predicate_of(*thread) ? 1 : 0;
    const uint32_t result = Operation::of(set, static_cast<uint32_t>(threads.size()));
    for (Thread* thread : threads)
        thread->set(thread->waits_at->d, result);
}
constexpr Meeting count{reduce<Count>};
constexpr Meeting all{reduce<All>};
constexpr Meeting any{reduce<Any>};

void decode_barrier(Line& line, bool is_aligned) {
    if (line.take("warp"))
        return line.refuse();
    line.take("cta");
    is_aligned |= line.take("aligned");
    const bool reduces = line.take_one({"sync", "red"}) == "red";
    Instruction made{.run = run_barrier, .immediate = is_aligned ? 1 : 0};
    size_t first = 0, end = line.count();
    if (reduces) {
        const std::string_view operation = line.take_one({"popc", "and", "or"});
        const Type type = line.take_type();
        if (operation.empty() || (type == Type::u32) != (operation == "popc") || line.count() < 3)
            return line.refuse();
        made.more = operation == "popc" ? &count : operation == "and" ? &all : &any;
        made.d = line.target(0, type);
        Operand predicate = line.operand(line.count() - 1);
        made.count = std::exchange(predicate.is_inverted, false) ? 1 : 0;
        made.a = line.source(predicate, Type::pred);
        first = 1;
        --end;
    }
    if (end - first < 1 || end - first > 2)
        return line.refuse();
    made.b = line.source(first, Type::b32);
    made.c = end - first == 2 ? line.source(first + 1, Type::b32) : line.constant(0);
    line.emit(made);
}

}  // namespace

void add_barriers(Table& table) {
    table["bar"] = [](Line& line) {
        if (line.has("warp"))
            decode_warp_barrier(line);
        else
            decode_barrier(line, true);
    };
    table["barrier"] = [](Line& line) { decode_barrier(line, false); };
}

}  // namespace polder::ptx
