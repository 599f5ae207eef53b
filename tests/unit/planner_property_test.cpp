// Planner, residency and transfers against a model that knows every byte, over thousands of random runs.
#include "support/coherence_model.h"
#include "support/effort.h"

namespace polder::test {
namespace {

constexpr int commands = 40;

TEST(Coherence, RandomCommandsOnOneToFourMemoriesAgreeWithAModelOfEveryByte) {
    for (uint64_t seed = 1; seed <= seeds(4000); ++seed) {
        RandomChoices choices{seed};
        CoherenceRun run{choices};
        run.run(commands);
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
}

// Twelve storages of up to 384 bytes, and devices of 2048: the storages of one command fit, all together do not.
TEST(Coherence, RandomCommandsOnMemoriesThatAreTooSmallKeepEveryByte) {
    for (uint64_t seed = 1; seed <= seeds(2000); ++seed) {
        RandomChoices choices{seed};
        CoherenceRun run{choices, Room::short_of};
        run.run(2 * commands);
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
}

} // namespace
} // namespace polder::test
