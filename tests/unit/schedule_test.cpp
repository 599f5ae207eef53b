// How the commands of a command buffer are divided into parts.
#include <runtime/schedule.h>

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace polder::runtime {
namespace {

using Commands = std::vector<RecordedCommand>;
using Numbers = std::vector<uint32_t>;

RecordedCommand on(uint32_t queue, Numbers waits_for = {}) { return {nullptr, queue, std::move(waits_for), false}; }

// "queue:waits queue:waits …"
std::string text(const Schedule& schedule) {
    std::string result;
    for (const Schedule::Part& part : schedule.parts()) {
        result += (result.empty() ? "" : " ") + std::to_string(part.queue) + ":";
        for (const uint32_t earlier : part.waits_for)
            result += std::to_string(earlier);
    }
    return result;
}

std::string divided(const Commands& commands, size_t queue_count) { return text(Schedule{commands, queue_count}); }

TEST(Schedule, OneQueueIsOnePart) {
    EXPECT_EQ(divided({}, 1), "0:");
    EXPECT_EQ(divided({on(0), on(0), on(0)}, 1), "0:");
}

TEST(Schedule, QueuesWithoutSyncPointsAreOnePartEach) { EXPECT_EQ(divided({on(0), on(1), on(0), on(1)}, 2), "0: 1:"); }

TEST(Schedule, ACommandThatWaitsForAnotherQueueBeginsAPart) {
    EXPECT_EQ(divided({on(0), on(1), on(0, {1}), on(0)}, 2), "0: 1: 0:01");
    // For its own queue, or for what the part waits for already, it does not.
    EXPECT_EQ(divided({on(0), on(1), on(0, {0}), on(1, {1})}, 2), "0: 1:");
    EXPECT_EQ(divided({on(1), on(0, {0}), on(0, {0})}, 2), "1: 0:0");
}

// In a pipeline, the second item's first stage is not part of what the first item's second stage waits for.
TEST(Schedule, APartEndsWithWhatAnotherQueueWaitsFor) {
    EXPECT_EQ(divided({on(0), on(0), on(1, {0})}, 2), "0: 0:0 1:0");
    EXPECT_EQ(divided({on(0), on(1, {0}), on(0), on(1, {2})}, 2), "0: 1:0 0:0 1:12");
}

TEST(Schedule, ABarrierWaitsForTheNewestPartOfEveryQueue) {
    Commands commands{on(0), on(1), on(2), on(1, {0})};
    commands.push_back({nullptr, 0, {}, true});
    EXPECT_EQ(divided(commands, 3), "0: 1: 2: 1:10 0:032");
}

// Whatever is recorded: a command comes after what it waits for and after its queue's earlier commands, and after nothing else
// of other queues.
TEST(Schedule, RandomSyncPointsAreKept_AndNoOthersAreAdded) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
        std::minstd_rand random{seed + 1};
        const uint32_t queue_count = 2 + random() % 3;
        Commands commands;
        for (uint32_t i = 0; i < 30; ++i) {
            RecordedCommand command = on(random() % queue_count);
            for (uint32_t k = random() % 3; i > 0 && k > 0; --k)
                command.waits_for.push_back(random() % i);
            commands.push_back(command);
        }
        const Schedule schedule{commands, queue_count};
        Numbers part_of(commands.size());
        for (uint32_t queue = 0; queue < queue_count; ++queue) {
            size_t next = 0;
            for (uint32_t p = 0; p < schedule.parts().size(); ++p)
                for (uint32_t left = schedule.parts()[p].command_count; schedule.parts()[p].queue == queue && left > 0;
                     ++next)
                    if (commands[next].queue == queue) {
                        part_of[next] = p;
                        --left;
                    }
        }
        // must[i][j]: command i has to wait for command j. after[p][q]: part p comes after part q.
        std::vector<std::vector<bool>> must(30, std::vector<bool>(30)), after(schedule.parts().size());
        for (size_t i = 0; i < 30; ++i)
            for (size_t j = 0; j < i; ++j) {
                const bool direct = commands[j].queue == commands[i].queue ||
                                    std::ranges::find(commands[i].waits_for, j) != commands[i].waits_for.end();
                if (direct) {
                    must[i][j] = true;
                    for (size_t k = 0; k < j; ++k)
                        must[i][k] = must[i][k] || must[j][k];
                }
            }
        for (size_t p = 0; p < after.size(); ++p) {
            after[p].resize(after.size());
            after[p][p] = true;
            for (const uint32_t q : schedule.parts()[p].waits_for) {
                ASSERT_LT(q, p) << seed;
                EXPECT_TRUE(schedule.parts()[q].is_waited_for);
                for (size_t r = 0; r <= q; ++r)
                    after[p][r] = after[p][r] || after[q][r];
            }
        }
        for (size_t i = 0; i < 30; ++i)
            for (size_t j = 0; j < i; ++j)
                EXPECT_EQ(after[part_of[i]][part_of[j]] || commands[i].queue == commands[j].queue, must[i][j])
                    << "seed " << seed << ", " << i << " after " << j;
    }
}

}  // namespace
}  // namespace polder::runtime
