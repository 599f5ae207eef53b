// Threads of a block: barriers, warps, locks, and what ends a launch.
#include "interpreted.h"

#include <algorithm>
#include <array>

namespace polder::ptx::test {
namespace {

const std::string lane_address = R"(
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd1, %r0, 8;
    add.s64 %rd1, %rd0, %rd1;
)";

// Executes `statements` in each thread; what they leave in %r9 is returned for each.
std::vector<uint32_t> results_of(const std::string& statements, uint32_t threads) {
    std::vector<uint64_t> memory(threads, 0);
    run_threads(kernel(lane_address + statements + "    st.global.b32 [%rd1], %r9;\n    ret;\n"), memory, threads);
    return {memory.begin(), memory.end()};
}

Module::Outcome outcome_of(const std::string& statements, uint32_t threads = 1) {
    const auto module = loaded(kernel(lane_address + statements + "    ret;\n"));
    std::vector<uint64_t> memory(threads + 1, 0);
    return module ? run(*module, memory, {{1, 1, 1}, {threads, 1, 1}, 0}) : Module::Outcome{};
}

TEST(PtxThreads, ABarrierSeparatesWritesFromReads) {
    constexpr uint32_t threads = 100;
    std::vector<uint64_t> memory(threads);
    run_threads(".shared .align 4 .b8 table[400];\n" + kernel(lane_address + R"(
    mov.b64 %rd2, table;
    mul.wide.u32 %rd3, %r0, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.shared.b32 [%rd4], %r0;
    bar.sync 0;
    sub.s32 %r1, 99, %r0;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.shared.b32 %r9, [%rd4];
    st.global.b64 [%rd1], %rd4;
    st.global.b32 [%rd1], %r9;
    ret;
)"),
                memory, threads);
    for (uint32_t i = 0; i < threads; ++i)
        EXPECT_EQ(static_cast<uint32_t>(memory[i]), threads - 1 - i);
}

TEST(PtxThreads, ABarrierDoesNotWaitForThreadsThatHaveEnded) {
    const auto results = results_of(R"(
    setp.gt.u32 %p0, %r0, 40;
    @%p0 bra END;
    barrier.sync 1;
    mov.b32 %r9, 7;
END:
)",
                                    64);
    EXPECT_EQ(results[40], 7u);
    EXPECT_EQ(results[41], 0u);
}

TEST(PtxThreads, BarriersReduce) {
    const auto results = results_of(R"(
    setp.lt.u32 %p0, %r0, 10;
    bar.red.popc.u32 %r9, 0, %p0;
    bar.red.and.pred %p1, 0, %p0;
    bar.red.or.pred %p2, 0, %p0;
    selp.b32 %r1, 100, 0, %p1;
    selp.b32 %r2, 1000, 0, %p2;
    add.s32 %r9, %r9, %r1;
    add.s32 %r9, %r9, %r2;
)",
                                    70);
    EXPECT_EQ(results, std::vector<uint32_t>(70, 1010));
}

TEST(PtxThreads, DynamicMemoryLiesBehindTheStatic) {
    std::array<uint64_t, 2> memory{};
    run_threads(".shared .align 4 .b8 fixed[20];\n.extern .shared .align 16 .b8 dynamic[];\n" + kernel(R"(
    mov.b64 %rd1, fixed;
    mov.b64 %rd2, dynamic;
    sub.s64 %rd3, %rd2, %rd1;
    st.global.b64 [%rd0], %rd3;
    st.shared.b32 [%rd2+60], 5;
    cvta.shared.u64 %rd4, %rd2;
    ld.b32 %r1, [%rd4+60];
    st.global.b32 [%rd0+8], %r1;
    ret;
)"),
                memory, 1, 64);
    EXPECT_EQ(memory[0], 32u);
    EXPECT_EQ(memory[1], 5u);
}

TEST(PtxThreads, ShufflesReadOtherLanes) {
    EXPECT_EQ(results_of("    shfl.sync.idx.b32 %r9, %r0, 5, 31, 0xffffffff;\n", 32), std::vector<uint32_t>(32, 5));
    const auto up = results_of("    shfl.sync.up.b32 %r9|%p0, %r0, 1, 0, 0xffffffff;\n", 32);
    EXPECT_EQ(up[0], 0u);
    EXPECT_EQ(up[31], 30u);
    const auto down = results_of("    shfl.sync.down.b32 %r9, %r0, 2, 31, 0xffffffff;\n", 32);
    EXPECT_EQ(down[0], 2u);
    EXPECT_EQ(down[31], 31u);
    // In segments of 8.
    const auto butterfly = results_of("    shfl.sync.bfly.b32 %r9, %r0, 9, 0x1807, 0xffffffff;\n", 32);
    EXPECT_EQ(butterfly[3], 3u);
    const auto segment = results_of("    shfl.sync.idx.b32 %r9, %r0, 3, 0x181f, 0xffffffff;\n", 32);
    EXPECT_EQ(segment[17], 19u);
    const auto in_range = results_of(R"(
    shfl.sync.down.b32 %r1|%p0, %r0, 1, 31, 0xffffffff;
    selp.b32 %r9, 1, 0, %p0;
)",
                                     32);
    EXPECT_EQ(in_range[30], 1u);
    EXPECT_EQ(in_range[31], 0u);
}

TEST(PtxThreads, VotesAndMatchesSeeTheMembersOfTheMask) {
    EXPECT_EQ(results_of("    setp.lt.u32 %p0, %r0, 4;\n    vote.sync.ballot.b32 %r9, %p0, 0xffffffff;\n", 32)[9],
              0xfu);
    EXPECT_EQ(results_of("    setp.lt.u32 %p0, %r0, 4;\n    vote.sync.ballot.b32 %r9, !%p0, 0xffffffff;\n", 32)[9],
              0xfffffff0u);
    // The last warp is not full.
    EXPECT_EQ(results_of("    setp.ge.u32 %p0, %r0, 0;\n    vote.sync.ballot.b32 %r9, %p0, 0xffffffff;\n", 40)[39],
              0xffu);
    EXPECT_EQ(results_of("    and.b32 %r1, %r0, 1;\n    match.any.sync.b32 %r9, %r1, 0xffffffff;\n", 32)[1],
              0xaaaaaaaau);
    EXPECT_EQ(results_of("    match.all.sync.b32 %r9|%p0, %r0, 0xffffffff;\n", 32)[1], 0u);
    EXPECT_EQ(results_of("    redux.sync.add.s32 %r9, %r0, 0xffffffff;\n", 32)[3], 31u * 16);
    EXPECT_EQ(results_of("    sub.s32 %r1, 0, %r0;\n    redux.sync.min.s32 %r9, %r1, 0xffffffff;\n", 32)[3], 0u - 31);
    EXPECT_EQ(results_of("    redux.sync.xor.b32 %r9, 1, 0xffffffff;\n", 32)[3], 0u);
}

TEST(PtxThreads, MembersOfDifferentMasksDoNotWaitForEachOther) {
    const auto results = results_of(R"(
    and.b32 %r1, %r0, 1;
    setp.eq.b32 %p0, %r1, 0;
    @%p0 bra EVEN;
    redux.sync.add.s32 %r9, %r0, 0xaaaaaaaa;
    bra.uni END;
EVEN:
    redux.sync.add.s32 %r9, %r0, 0x55555555;
END:
)",
                                    32);
    EXPECT_EQ(results[0], 240u);
    EXPECT_EQ(results[1], 256u);
}

TEST(PtxThreads, ActivemaskSeesThoseThatHaveTakenTheSamePath) {
    const std::string diverge = R"(
    setp.lt.u32 %p0, %r0, 8;
    @!%p0 bra OTHERS;
    activemask.b32 %r9;
    bra.uni TOGETHER;
OTHERS:
    activemask.b32 %r9;
TOGETHER:
)";
    const auto divided = results_of(diverge, 32);
    EXPECT_EQ(divided[0], 0xffu);
    EXPECT_EQ(divided[31], 0xffffff00u);
    // Behind the branch they are together again.
    EXPECT_EQ(results_of(diverge + "    activemask.b32 %r9;\n", 32), std::vector<uint32_t>(32, 0xffffffff));
}

TEST(PtxThreads, ThreadsMeetBehindALoopThatTheyLeaveAtDifferentTimes) {
    // Behind the loop in the text, and, in the second one, before it.
    EXPECT_EQ(results_of(R"(
    mov.b32 %r1, 0;
LOOP:
    activemask.b32 %r2;
    add.s32 %r1, %r1, 1;
    setp.le.u32 %p0, %r1, %r0;
    @%p0 bra LOOP;
    activemask.b32 %r9;
)",
                         32),
              std::vector<uint32_t>(32, 0xffffffff));
    EXPECT_EQ(results_of(R"(
    mov.b32 %r1, 0;
    bra.uni LOOP;
BEHIND:
    activemask.b32 %r9;
    bra.uni END;
LOOP:
    activemask.b32 %r2;
    add.s32 %r1, %r1, 1;
    setp.gt.u32 %p0, %r1, %r0;
    @%p0 bra BEHIND;
    bra.uni LOOP;
END:
)",
                         32),
              std::vector<uint32_t>(32, 0xffffffff));
}

// Longer than the share of instructions that a thread executes at once.
TEST(PtxThreads, ThreadsMeetBehindALongLoop) {
    EXPECT_EQ(results_of(R"(
    mul.lo.s32 %r1, %r0, 3000;
LOOP:
    setp.eq.b32 %p0, %r1, 0;
    @%p0 bra BEHIND;
    sub.s32 %r1, %r1, 1;
    bra.uni LOOP;
BEHIND:
    activemask.b32 %r9;
)",
                         32),
              std::vector<uint32_t>(32, 0xffffffff));
}

TEST(PtxThreads, ASpinLockIsPassedFromThreadToThreadOfAWarp) {
    std::vector<uint64_t> memory(2, 0);
    run_threads(kernel(R"(
LOCK:
    atom.relaxed.gpu.global.cas.b32 %r1, [%rd0], 0, 1;
    setp.ne.b32 %p0, %r1, 0;
    @%p0 bra LOCK;
    ld.volatile.global.b32 %r2, [%rd0+8];
    add.s32 %r2, %r2, 1;
    nanosleep.u32 20;
    st.volatile.global.b32 [%rd0+8], %r2;
    fence.acq_rel.gpu;
    atom.relaxed.gpu.global.exch.b32 %r1, [%rd0], 0;
    ret;
)"),
                memory, 64);
    EXPECT_EQ(memory[1], 64u);
}

TEST(PtxThreads, AtomicsOfAllOperations) {
    std::vector<uint64_t> memory{10, 0xf0f0, 5, 100, 3, std::bit_cast<uint64_t>(0.5), 7, 0};
    run_threads(kernel(R"(
    atom.global.add.u64 %rd2, [%rd0], 1;
    red.global.and.b32 [%rd0+8], 0xff00;
    atom.global.inc.u32 %r1, [%rd0+16], 5;
    atom.max.s64 %rd3, [%rd0+24], -1;
    red.global.dec.u32 [%rd0+32], 9;
    atom.global.add.f64 %rd4, [%rd0+40], 0d3FF8000000000000;
    atom.global.cas.b64 %rd5, [%rd0+48], 7, 8;
    add.s64 %rd6, %rd2, %rd5;
    st.global.b64 [%rd0+56], %rd6;
    ret;
)"),
                memory, 1);
    EXPECT_EQ(memory, (std::vector<uint64_t>{11, 0xf000, 0, 100, 2, std::bit_cast<uint64_t>(2.0), 8, 17}));
}

TEST(PtxThreads, AtomicsOfLogicAndOrder) {
    std::vector<uint64_t> memory{0xf0, 0xff, 5, 5, 1, 0};
    run_threads(kernel(R"(
    red.global.or.b32 [%rd0], 0x0f;
    red.global.xor.b32 [%rd0+8], 0xf0;
    red.global.min.s32 [%rd0+16], 3;
    red.global.max.u32 [%rd0+24], 9;
    atom.global.exch.b64 %rd2, [%rd0+32], 2;
    st.global.b64 [%rd0+40], %rd2;
    ret;
)"),
                memory, 1);
    EXPECT_EQ(memory, (std::vector<uint64_t>{0xff, 0x0f, 3, 9, 2, 1}));
}

// --- what ends a launch ---

TEST(PtxFaults, MemoryThatIsNotTheGpusIsRefused) {
    const auto beyond = outcome_of("    st.global.b32 [%rd0+16], 1;\n");
    EXPECT_EQ(beyond.fault, Fault::illegal_address);
    EXPECT_NE(beyond.what.find("a store to 0x"), std::string::npos) << beyond.what;
    EXPECT_NE(beyond.what.find("thread (0, 0, 0) of block (0, 0, 0)"), std::string::npos) << beyond.what;
    EXPECT_EQ(outcome_of("    ld.global.b32 %r1, [64];\n").fault, Fault::illegal_address);
    EXPECT_EQ(outcome_of("    ld.global.b64 %rd2, [%rd0+12];\n").fault, Fault::illegal_address);
    EXPECT_EQ(outcome_of("    atom.global.add.u32 %r1, [%rd0+16], 1;\n").fault, Fault::illegal_address);
    EXPECT_EQ(outcome_of("    ld.shared.b32 %r1, [0];\n").fault, Fault::illegal_address);
    EXPECT_EQ(outcome_of("    mov.b64 %rd2, -8;\n    ld.b64 %rd3, [%rd2];\n").fault, Fault::illegal_address);
    EXPECT_EQ(outcome_of("    ld.global.b64 %rd2, [%rd0+8];\n").fault, Fault::none);
}

TEST(PtxFaults, AccessesMustBeAlignedToTheirSize) {
    EXPECT_EQ(outcome_of("    ld.global.b32 %r1, [%rd0+2];\n").fault, Fault::misaligned_address);
    EXPECT_EQ(outcome_of("    ld.global.v2.b32 {%r1, %r2}, [%rd0+4];\n").fault, Fault::misaligned_address);
    EXPECT_EQ(outcome_of("    st.global.b16 [%rd0+2], 1;\n").fault, Fault::none);
    EXPECT_EQ(outcome_of("    .local .align 8 .b8 depot[16];\n    st.local.b64 [depot+4], 1;\n").fault,
              Fault::misaligned_address);
}

TEST(PtxFaults, ATrapEndsTheLaunch) {
    const auto outcome = outcome_of("    setp.eq.b32 %p0, %r0, 3;\n    @%p0 trap;\n", 8);
    EXPECT_EQ(outcome.fault, Fault::launch_failed);
    EXPECT_NE(outcome.what.find("trap"), std::string::npos);
    EXPECT_NE(outcome.what.find("thread (3, 0, 0)"), std::string::npos) << outcome.what;
}

TEST(PtxFaults, ThreadsThatWaitForEverAreReported) {
    const auto barriers = outcome_of(R"(
    setp.lt.u32 %p0, %r0, 32;
    @%p0 bar.sync 1;
    @!%p0 bar.sync 2;
)",
                                     64);
    EXPECT_EQ(barriers.fault, Fault::launch_failed);
    EXPECT_NE(barriers.what.find("do not come"), std::string::npos) << barriers.what;
    const auto mask = outcome_of(R"(
    setp.lt.u32 %p0, %r0, 4;
    @%p0 bar.warp.sync 0xff;
    bar.sync 0;
)",
                                 32);
    EXPECT_EQ(mask.fault, Fault::launch_failed);
    const auto own = outcome_of("    bar.warp.sync 0xfffffffe;\n", 32);
    EXPECT_EQ(own.fault, Fault::illegal_instruction);
    const auto unaligned = outcome_of(R"(
    setp.lt.u32 %p0, %r0, 4;
    @%p0 bar.sync 0;
    @!%p0 bar.sync 0;
)",
                                      32);
    EXPECT_EQ(unaligned.fault, Fault::launch_failed);
    EXPECT_NE(unaligned.what.find("different barriers"), std::string::npos) << unaligned.what;
}

}  // namespace
}  // namespace polder::ptx::test
