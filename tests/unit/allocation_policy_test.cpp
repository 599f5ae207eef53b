// The settings of allocation policies: PyTorch's keys and meanings, and one warning about what is not understood.
#include <memory/allocation_policy.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace polder::memory {
namespace {

using testing::HasSubstr;
using testing::Not;
using Backend = AllocationPolicy::Backend;

constexpr uint64_t MiB = uint64_t{1} << 20;

AllocationPolicy parsed(std::string_view text) {
    const ParsedPolicy result = parse_policy(text, "POLDER_ALLOC_CONF");
    EXPECT_EQ(result.warning, "");
    return result.policy;
}

TEST(AllocationPolicy, NothingSet_IsBufalloc) {
    const AllocationPolicy policy = parsed("");
    EXPECT_EQ(policy.backend, Backend::bufalloc);
    EXPECT_EQ(policy.max_split_size.value, AllocationPolicy::unlimited);
    EXPECT_FALSE(policy.expandable_segments);
}

TEST(AllocationPolicy, EveryKeyIsRead_WithColonsAsInPyTorchAndWithEqualsSigns) {
    for (const char* text : {"backend:caching,max_split_size_mb:128,roundup_power2_divisions:4,"
                             "garbage_collection_threshold:0.8,expandable_segments:True,max_bytes:512M",
                             "backend=caching,max_split_size_mb=128,roundup_power2_divisions=4,"
                             "garbage_collection_threshold=0.8,expandable_segments=true,max_bytes=512M"}) {
        const AllocationPolicy policy = parsed(text);
        EXPECT_EQ(policy.backend, Backend::caching);
        EXPECT_EQ(policy.max_split_size.value, 128 * MiB);
        EXPECT_EQ(policy.roundup_power2_divisions[0], 4u);
        EXPECT_DOUBLE_EQ(policy.garbage_collection_threshold, 0.8);
        EXPECT_TRUE(policy.expandable_segments);
        EXPECT_EQ(policy.max_bytes->value, 512 * MiB);
    }
}

TEST(AllocationPolicy, UnknownKeys_AreOneWarningThatListsTheKnownOnes) {
    const ParsedPolicy result = parse_policy("backend:bucket,release_lock:True,foo:1", "POLDER_ALLOC_CONF");
    EXPECT_EQ(result.policy.backend, Backend::bucket);
    EXPECT_THAT(result.warning, HasSubstr("POLDER_ALLOC_CONF: "));
    for (const char* word : {"\"release_lock:True\"", "\"foo:1\"", "backend", "max_split_size_mb",
                             "roundup_power2_divisions", "garbage_collection_threshold", "expandable_segments"})
        EXPECT_THAT(result.warning, HasSubstr(word));
}

TEST(AllocationPolicy, MalformedValues_AreReportedAndTheDefaultTaken) {
    for (const char* text :
         {"backend:native", "max_split_size_mb:20", "max_split_size_mb:x", "max_bytes:-1", "roundup_power2_divisions:3",
          "roundup_power2_divisions:[3:1]", "roundup_power2_divisions:[512:1,256:2]",
          "garbage_collection_threshold:1.0", "garbage_collection_threshold:0", "expandable_segments:maybe"}) {
        const ParsedPolicy result = parse_policy(text, "V");
        EXPECT_THAT(result.warning, HasSubstr(text));
        EXPECT_THAT(result.warning, Not(HasSubstr("unknown")));
        EXPECT_EQ(result.policy.backend, Backend::bufalloc);
        EXPECT_EQ(result.policy.max_split_size.value, AllocationPolicy::unlimited);
        EXPECT_EQ(result.policy.round_to_division(1200), 1200u);
    }
}

// https://pytorch.org/docs/stable/notes/cuda.html: "1200 lies between 1024 and 2048 and if we do 4 divisions between
// them, the values are 1024, 1280, 1536, and 1792. So, allocation size of 1200 will be rounded to 1280".
TEST(AllocationPolicy, PyTorchsExampleOfDivisions) {
    const AllocationPolicy policy = parsed("roundup_power2_divisions:4");
    EXPECT_EQ(policy.round_to_division(1200), 1280u);
    EXPECT_EQ(policy.round_to_division(1024), 1024u);
    EXPECT_EQ(policy.round_to_division(1281), 1536u);
    EXPECT_EQ(policy.round_to_division(1793), 2048u);
}

// The same page: [256:1,512:2,1024:4,>:8] is 1 below 256 MB, 2 from 256 to 512 MB, 4 to 1 GB, and 8 above.
TEST(AllocationPolicy, PyTorchsExampleOfAListOfDivisions) {
    const AllocationPolicy policy = parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    EXPECT_EQ(policy.round_to_division(129 * MiB), 129 * MiB);
    EXPECT_EQ(policy.round_to_division(257 * MiB), 384 * MiB);
    EXPECT_EQ(policy.round_to_division(513 * MiB), 640 * MiB);
    EXPECT_EQ(policy.round_to_division(1025 * MiB), 1152 * MiB);
    EXPECT_EQ(policy.round_to_division(900ull << 30), 960ull << 30);
}

TEST(AllocationPolicy, ParametersOfADevice_AreDividedBetweenPolicyAndDriver) {
    const SplitParameters split =
        split_parameters("memory=256M,backend=caching,bandwidth=16G,roundup_power2_divisions=[256:1,>:4],peer=1");
    EXPECT_EQ(split.driver, "memory=256M,bandwidth=16G,peer=1");
    EXPECT_EQ(split.policy, "backend=caching,roundup_power2_divisions=[256:1,>:4]");
}

}  // namespace
}  // namespace polder::memory
