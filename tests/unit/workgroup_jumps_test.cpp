// Random kernels of `goto`s, most of them with loops that have several entries, against an interpreter of the same blocks.

#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace polder::compiler::workgroup::test {
namespace {

constexpr uint32_t items = 48;  // in a group
constexpr uint32_t most_blocks = 60;  // that a work-item runs before it ends

// What a work-item keeps. `path` alone decides where it jumps to.
struct Item {
    uint32_t path;
    uint32_t value;
};

struct Jump {
    uint32_t mask;
    size_t to;
};
struct Block {
    int operation;
    std::vector<Jump> jumps;  // the first whose mask has a bit of `path`
    size_t otherwise;
};
using Program = std::vector<Block>;

constexpr int last_plain_operation = 2;
constexpr int exchange = 3;  // with the next work-item, between barriers

const char* source_of(int operation) {
    switch (operation) {
    case 0: return "path = path * 3 + 1; value += path;";
    case 1: return "value ^= path << 3; path = path * 5 + count;";
    case 2: return "path = (path >> 1) | (path << 31); value = value * 7 + count;";
    default:
        return "near[me] = value; barrier(CLK_LOCAL_MEM_FENCE); value ^= near[(me + 1) % size] + count; "
               "barrier(CLK_LOCAL_MEM_FENCE); path = (path >> 3) | (path << 29);";
    }
}

void run_plain(int operation, Item& item, uint32_t count) {
    switch (operation) {
    case 0:
        item.path = item.path * 3 + 1;
        item.value += item.path;
        break;
    case 1:
        item.value ^= item.path << 3;
        item.path = item.path * 5 + count;
        break;
    default: item.path = (item.path >> 1) | (item.path << 31); item.value = item.value * 7 + count;
    }
}

size_t next_block(const Block& block, uint32_t path) {
    for (const Jump& jump : block.jumps)
        if (path & jump.mask)
            return jump.to;
    return block.otherwise;
}

Program random_program(uint32_t seed, int last_operation) {
    std::mt19937 random(seed);
    Program program(3 + random() % 6);
    for (Block& block : program) {
        block.operation = static_cast<int>(random() % static_cast<uint32_t>(last_operation + 1));
        for (uint32_t jump = random() % 3; jump != 0; --jump)
            block.jumps.push_back({1U << random() % 9, random() % program.size()});
        block.otherwise = random() % program.size();
    }
    return program;
}

std::string source_of(const Program& program, const std::string& name) {
    std::string text = "kernel void " + name +
                       "(global const uint* in, global uint* out) {\n"
                       "local uint near[" +
                       std::to_string(items) +
                       "];\n"
                       "uint me = get_local_id(0), size = get_local_size(0), count = 0;\n"
                       "uint path = in[2 * get_global_id(0)], value = in[2 * get_global_id(0) + 1];\n";
    for (size_t at = 0; at < program.size(); ++at) {
        const Block& block = program[at];
        text += "block" + std::to_string(at) + ": if (++count > " + std::to_string(most_blocks) + ") goto end;\n";
        text += source_of(block.operation);
        for (const Jump& jump : block.jumps)
            text += " if (path & " + std::to_string(jump.mask) + ") goto block" + std::to_string(jump.to) + ";";
        text += " goto block" + std::to_string(block.otherwise) + ";\n";
    }
    return text + "end: out[get_global_id(0)] = value + path;\n}\n";
}

// Each work-item on its own.
void interpret(const Program& program, Item& item) {
    size_t at = 0;
    for (uint32_t count = 1; count <= most_blocks; ++count) {
        run_plain(program[at].operation, item, count);
        at = next_block(program[at], item.path);
    }
}

// All work-items of a group in step; they have one `path`.
void interpret(const Program& program, std::vector<Item>& group) {
    size_t at = 0;
    for (uint32_t count = 1; count <= most_blocks; ++count) {
        if (program[at].operation == exchange) {
            const std::vector<Item> before = group;
            for (size_t item = 0; item < group.size(); ++item) {
                group[item].value ^= before[(item + 1) % group.size()].value + count;
                group[item].path = (group[item].path >> 3) | (group[item].path << 29);
            }
        } else {
            for (Item& item : group)
                run_plain(program[at].operation, item, count);
        }
        at = next_block(program[at], group.front().path);
    }
}

std::vector<Item> random_items(size_t count, bool one_path) {
    std::mt19937 random(11);
    std::vector<Item> all(count);
    for (Item& item : all)
        item = {one_path ? 0x2f8d31c5U : static_cast<uint32_t>(random()), static_cast<uint32_t>(random())};
    return all;
}

constexpr uint32_t programs = 40;

// One source with all programs; entry points are not made before their turn.
Compiled compile(int last_operation) {
    std::string source;
    for (uint32_t seed = 0; seed < programs; ++seed)
        source += source_of(random_program(seed, last_operation), "k" + std::to_string(seed));
    return Compiled(source);
}

std::vector<uint32_t> run(Compiled& compiled, uint32_t seed, const std::vector<Item>& in) {
    EXPECT_EQ(compiled.prepare("k" + std::to_string(seed)), "");
    std::vector<uint32_t> out(in.size());
    compiled.run({1, {in.size(), 1, 1}, {items, 1, 1}}, Arguments().add(in.data()).add(out.data()));
    return out;
}

TEST(WorkgroupJumps, EachWorkItemFollowsItsOwn) {
    Compiled compiled = compile(last_plain_operation);
    for (uint32_t seed = 0; seed < programs; ++seed) {
        std::vector<Item> all = random_items(size_t{items} * 3, false);
        const std::vector<uint32_t> out = run(compiled, seed, all);
        const Program program = random_program(seed, last_plain_operation);
        for (size_t item = 0; item < all.size(); ++item) {
            interpret(program, all[item]);
            ASSERT_EQ(out[item], all[item].value + all[item].path) << "item " << item << " of\n"
                                                                   << source_of(program, "k");
        }
    }
}

TEST(WorkgroupJumps, BarriersInLoopsWithSeveralEntries) {
    Compiled compiled = compile(exchange);
    for (uint32_t seed = 0; seed < programs; ++seed) {
        std::vector<Item> all = random_items(items, true);
        const std::vector<uint32_t> out = run(compiled, seed, all);
        const Program program = random_program(seed, exchange);
        interpret(program, all);
        for (size_t item = 0; item < all.size(); ++item)
            ASSERT_EQ(out[item], all[item].value + all[item].path) << "item " << item << " of\n"
                                                                   << source_of(program, "k");
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
