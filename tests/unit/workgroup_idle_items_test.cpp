// Work-items that do nothing unless a value that they read demands it, in loops without lanes.
#include "workgroup_harness.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace polder::compiler::workgroup::test {
namespace {

// A step of a breadth-first search. Lanes would gather and scatter in the inner loop.
constexpr const char* search = R"(
    kernel void step(global const int2* nodes, global const int* edges, global char* mask, global char* next,
                     global const char* visited, global int* cost, int n) {
        int id = get_global_id(0);
        if (id < n && mask[id]) {
            mask[id] -= 1;
            for (int i = nodes[id].x; i < nodes[id].x + nodes[id].y; ++i)
                if (!visited[edges[i]]) {
                    cost[edges[i]] = cost[id] + 1;
                    next[edges[i]] = 1;
                }
        }
    })";

TEST(IdleItems, AreFoundByLanes) {
    Compiled program(search, processor_with_512_bits);
    ASSERT_EQ(program.prepare("step"), "");
    EXPECT_EQ(program.result().lanes.loops, 0) << program.optimised();
    EXPECT_EQ(program.result().lanes.scalar_loops, 1);
    EXPECT_NE(program.result().lanes.reason.find("skip"), std::string::npos) << program.result().lanes.reason;
    EXPECT_NE(program.optimised().find("<64 x i8> @llvm.masked.load"), std::string::npos) << program.optimised();
}

// The bits of 64 guards are one number, from which the places of the busy work-items follow.
TEST(IdleItems, BetweenBusyOnes_AreNotVisited) {
    Compiled program(search, processor_with_512_bits);
    ASSERT_EQ(program.prepare("step"), "");
    EXPECT_TRUE(has(program, "@llvm.cttz.i64(")) << program.optimised();
}

// A guard is not evaluated ahead when it is the same for all work-items, when it has an effect, or when code that all work-items run follows it.
TEST(IdleItems, AreNotLookedForWithoutAGuardThatReads) {
    for (const std::string body : {"if (id < n) WORK", "if (id < n && other[0]) WORK", "if (mask[id]++) WORK",
                                   "if (mask[id]) WORK cost[id] = id;", "if (mask[cost[id]]) WORK",
                                   "if (((volatile global char*)mask)[0] && mask[id]) WORK"}) {
        std::string source = R"(
            kernel void k(global const int* edges, global char* mask, global int* cost, global const int* other, int n) {
                int id = get_global_id(0);
                BODY
            })";
        source.replace(source.find("BODY"), 4, body);
        source.replace(source.find("WORK"), 4, "for (int i = edges[id]; i < edges[id + 1]; ++i) cost[edges[i]] = i;");
        Compiled program(source, processor_with_512_bits);
        ASSERT_EQ(program.prepare("k"), "") << body;
        EXPECT_EQ(program.result().lanes.reason.find("skip"), std::string::npos) << body << program.optimised();
    }
}

struct Graph {
    std::vector<int32_t> nodes, edges;
    std::vector<int8_t> mask, next, visited;
    std::vector<int32_t> cost;

    Graph(size_t items, size_t every) : mask(items), next(items), visited(items), cost(items) {
        for (size_t id = 0; id < items; ++id) {
            const size_t count = id * 5 % 7;
            nodes.push_back(static_cast<int32_t>(edges.size()));
            nodes.push_back(static_cast<int32_t>(count));
            for (size_t i = 0; i < count; ++i)
                edges.push_back(static_cast<int32_t>((id * 31 + i * 17) % items));
            mask[id] = every != 0 && (id + 1) % every == 0 ? static_cast<int8_t>(-1) : int8_t{0};
            visited[id] = id % 3 == 0 ? int8_t{1} : int8_t{0};
        }
    }

    void step(size_t n) {
        for (size_t id = 0; id < n; ++id) {
            if (mask[id] == 0)
                continue;
            mask[id] = static_cast<int8_t>(mask[id] - 1);  // twice for an item that runs twice
            for (int32_t i = nodes[2 * id]; i < nodes[2 * id] + nodes[2 * id + 1]; ++i) {
                const auto to = static_cast<size_t>(edges[static_cast<size_t>(i)]);
                if (visited[to] == 0) {
                    cost[to] = 1;
                    next[to] = 1;
                }
            }
        }
    }
};

// None, all, and some of the work-items have something to do, in groups that are smaller than what is skipped, as large, and not a multiple.
void skip_alone(const std::string& processor) {
    Compiled program(search, processor);
    constexpr size_t items = 1000;
    for (const uint64_t local : {uint64_t{1}, uint64_t{40}, uint64_t{64}, uint64_t{100}, uint64_t{200}, uint64_t{1000}})
        for (const bool is_known : {false, true}) {
            ASSERT_EQ(program.prepare("step", is_known, {local, 1, 1}), "");
            for (const size_t every : {size_t{0}, size_t{1}, size_t{3}, size_t{50}, size_t{64}, size_t{97}, items})
                for (const int n : {0, 1, 63, 500, int{items}}) {
                    Graph graph(items, every), expected(items, every);
                    // Costs of the work-items themselves stay 0, so that the order of the items does not matter.
                    std::ranges::fill(graph.visited, int8_t{1});
                    for (size_t id = 0; id < items; ++id)
                        if (graph.mask[id] == 0)
                            graph.visited[id] = id % 3 == 0 ? int8_t{1} : int8_t{0};
                    expected.visited = graph.visited;
                    expected.step(static_cast<size_t>(n));
                    program.run({1, {items, 1, 1}, {local, 1, 1}}, Arguments()
                                                                       .add(graph.nodes.data())
                                                                       .add(graph.edges.data())
                                                                       .add(graph.mask.data())
                                                                       .add(graph.next.data())
                                                                       .add(graph.visited.data())
                                                                       .add(graph.cost.data())
                                                                       .add(n));
                    EXPECT_EQ(graph.mask, expected.mask) << local << ' ' << every << ' ' << n;
                    EXPECT_EQ(graph.next, expected.next) << local << ' ' << every << ' ' << n;
                    EXPECT_EQ(graph.cost, expected.cost) << local << ' ' << every << ' ' << n;
                }
        }
}

TEST(IdleItems, AreSkippedAlone) { skip_alone({}); }

TEST(IdleItems, AreSkippedAloneWithVectorsOf128Bits) { skip_alone("x86-64-v2"); }

}  // namespace
}  // namespace polder::compiler::workgroup::test
