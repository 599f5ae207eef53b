// PTX: each feature of OpenCL C becomes the instructions that it needs, and NVIDIA's assembler accepts them.
#include "ptx_support.h"

#include <compiler/zeroed_memory.h>

#include <polder/ptx_abi.h>

namespace polder::compiler::test {
namespace {

TEST(Nvptx, OneProgram_IsAssembledForEveryProcessor) {
    const Outcome built = build("kernel void k(global float* a, float b) { a[get_global_id(0)] += b; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    for (const char* processor : {"sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
        const PtxOutcome ptx = ptx_of(built.module, "k", processor);
        EXPECT_EQ(ptx.error, "") << processor;
        EXPECT_HAS(ptx, std::string{".target "} + processor);
        EXPECT_HAS(ptx, ".visible .entry k(");
    }
    EXPECT_NE(ptx_of(built.module, "k", "sm_1").error.find("sm_1"), std::string::npos);
}

// The host's code and the GPU's come from one module.
TEST(Nvptx, TheHost_RunsTheSameModule) {
    const Outcome built =
        build("global int c = 5; kernel void k(global int* a) { a[get_global_id(0)] += c; }", "-cl-std=CL3.0");
    ASSERT_EQ(built.status, Status::success) << built.log;
    EXPECT_EQ(ptx_of(built.module, "k").error, "");
    int a[4] = {1, 2, 3, 4};
    std::vector<std::byte> variables = built.module->program_variables().image;
    Launch{built, "k"}.set(0, &a[0]).run(4, 2, variables.data());
    EXPECT_EQ(a[3], 9);
}

TEST(Nvptx, Arguments_AreOneStructureWithTheHiddenOnesBehind) {
    const PtxOutcome ptx = one_kernel("typedef struct { int a; double b[3]; } S;"
                                      "kernel void k(char c, global int* p, S s, double16 d, local int* l, float3 f) {"
                                      "  l[0] = c + s.a; barrier(CLK_LOCAL_MEM_FENCE);"
                                      "  p[get_global_id(0)] = l[0] + s.b[p[0] % 3] + d.s3 + f.z; }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_HAS(ptx,
               ".param .align 16 .b8 k_param_0[" + std::to_string(ptx_parameter_bytes(ptx.code.arguments_size)) + "]");
    ASSERT_EQ(ptx.code.parameters.size(), 6u);
    EXPECT_EQ(ptx.code.parameters[3].offset, 128u);
    EXPECT_EQ(ptx.code.parameters[4].kind, driver::KernelParameter::Kind::local_pointer);
    EXPECT_HAS(ptx, ".extern .shared .align 128 .b8 polder_dynamic_local[];");
}

TEST(Nvptx, ThreadsOutsideTheRange_Return) {
    const char* const source = "kernel void k(global int* a) { a[get_global_id(0)] = 1; }";
    EXPECT_HAS(one_kernel(source), "setp");
    const PtxOutcome whole = one_kernel(source, "", WorkGroups{{64, 1, 1}, WorkGroups::Ends::whole});
    EXPECT_EQ(whole.error, "");
    EXPECT_FALSE(whole.has("setp")) << whole.code.code;
    EXPECT_HAS(whole, ".maxntid 64, 1, 1");
}

TEST(Nvptx, RequiredWorkGroupSize_IsInTheEntry) {
    const PtxOutcome ptx = one_kernel("__attribute__((reqd_work_group_size(8, 4, 2))) kernel void k(global ulong* a) {"
                                      "  a[get_global_id(0)] = get_enqueued_local_size(1); }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_HAS(ptx, ".reqntid 8, 4, 2");
}

TEST(Nvptx, EveryWorkItemFunction_IsThere) {
    const PtxOutcome ptx =
        one_kernel("kernel void k(global ulong* a, uint d) {"
                   "  *a = get_work_dim() + get_global_size(d) + get_global_id(d) + get_local_size(d) + get_local_id(d)"
                   "     + get_enqueued_local_size(d) + get_num_groups(d) + get_group_id(d) + get_global_offset(d)"
                   "     + get_global_linear_id() + get_local_linear_id(); }");
    EXPECT_EQ(ptx.error, "");
    for (const char* words : {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"})
        EXPECT_HAS(ptx, words);
}

TEST(Nvptx, Barriers) {
    const PtxOutcome narrow = one_kernel("kernel void k(global int* a) { local int l[64]; l[get_local_id(0)] = *a;"
                                         "  barrier(CLK_LOCAL_MEM_FENCE); a[1] = l[63 - get_local_id(0)]; }");
    EXPECT_EQ(narrow.error, "");
    EXPECT_HAS(narrow, "bar.sync");
    EXPECT_FALSE(narrow.has("fence.")) << narrow.code.code;
    const PtxOutcome wide =
        one_kernel("kernel void k(global int* a) { a[get_local_id(0)] = 1;"
                   "  work_group_barrier(CLK_GLOBAL_MEM_FENCE, memory_scope_device); a[9] = a[5]; }");
    EXPECT_EQ(wide.error, "");
    EXPECT_HAS(wide, "fence.sc.gpu");
    EXPECT_HAS(wide, "bar.sync");
}

TEST(Nvptx, LocalMemory_OverflowsIntoTheLaunch) {
    const std::string kernel = "kernel void k(global int* a, local int* more) { local int l[SIZE];"
                               "  l[get_local_id(0)] = a[0]; more[get_local_id(0)] = 1; barrier(CLK_LOCAL_MEM_FENCE);"
                               "  a[1] = l[a[2]] + more[a[3]]; }";
    const PtxOutcome small = one_kernel(kernel, "-DSIZE=256");
    EXPECT_EQ(small.error, "");
    EXPECT_EQ(small.code.local_bytes, 1024u);
    EXPECT_EQ(small.code.dynamic_local_bytes, 0u);
    const PtxOutcome large = one_kernel(kernel, "-DSIZE=20000");
    EXPECT_EQ(large.error, "");
    EXPECT_EQ(large.code.local_bytes, 80000u);
    EXPECT_EQ(large.code.dynamic_local_bytes, 80000u);
    EXPECT_NE(one_kernel(kernel, "-DSIZE=100000").error.find("local memory"), std::string::npos);
}

// LLVM forgets the order of atomicrmw for PTX.
TEST(Nvptx, AtomicOperations_HaveTheirFences) {
    const auto with_order = [](const std::string& order) {
        return one_kernel("kernel void k(global atomic_int* a, global int* b) {"
                          "  b[1] = atomic_fetch_add_explicit(a, 1, " +
                          order + ", memory_scope_device); }");
    };
    const PtxOutcome relaxed = with_order("memory_order_relaxed");
    EXPECT_EQ(relaxed.error, "");
    EXPECT_HAS(relaxed, "atom.");
    EXPECT_EQ(count(relaxed.code.code, "fence."), 0u) << relaxed.code.code;
    const PtxOutcome acquire = with_order("memory_order_acquire");
    EXPECT_EQ(count(acquire.code.code, "fence.acq_rel.gpu"), 1u) << acquire.code.code;
    EXPECT_GT(acquire.code.code.find("fence.acq_rel"), acquire.code.code.find("atom."));
    const PtxOutcome release = with_order("memory_order_release");
    EXPECT_EQ(count(release.code.code, "fence.acq_rel.gpu"), 1u) << release.code.code;
    EXPECT_LT(release.code.code.find("fence.acq_rel"), release.code.code.find("atom."));
    const PtxOutcome strict = with_order("memory_order_seq_cst");
    EXPECT_EQ(strict.error, "");
    EXPECT_LT(strict.code.code.find("fence.sc.gpu"), strict.code.code.find("atom."));
    EXPECT_GT(strict.code.code.find("fence.acq_rel.gpu"), strict.code.code.find("atom."));
}

TEST(Nvptx, AtomicLoadsStoresAndExchanges) {
    const PtxOutcome ptx =
        one_kernel("kernel void k(global atomic_long* a, global long* b, local int* l, global float* f) {"
                   "  long e = 3; b[0] = atomic_load(a); atomic_store(a, 5);"
                   "  b[1] = atomic_compare_exchange_strong(a, &e, 9L); b[2] = e; b[3] = atomic_exchange(a, 7L);"
                   "  atomic_inc(l); b[4] = atomic_cmpxchg(l, 1, 2); b[5] = atomic_fetch_max(a, 4L);"
                   "  f[0] = atomic_xchg(f + 1, 2.0f); }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_HAS(ptx, "ld.volatile.global");  // PTX: relaxed, for the whole system
    EXPECT_HAS(ptx, "st.volatile.global");
    EXPECT_HAS(ptx, "cas.b64");
    EXPECT_HAS(ptx, "atom.shared");
    EXPECT_HAS(ptx, "fence.sc.gpu");
}

// Additions are instructions of the GPU, and loops for small floats; minima and maxima compare and exchange, halves the word that they are in.
TEST(Nvptx, AtomicOperationsOfFloatingPointNumbers) {
    const auto ptx_for = [](const std::string& type, const std::string& operation, const char* processor) {
        const std::string number = type == "half" ? "16" : type == "float" ? "32" : "64";
        std::vector<std::string> features;
        for (const char* what : {"_global_atomic_add", "_local_atomic_add", "_global_atomic_min_max",
                                 "_local_atomic_min_max", "_global_atomic_load_store", "_local_atomic_load_store"})
            if (number == "16" || !std::string_view(what).ends_with("load_store"))
                features.push_back("__opencl_c_ext_fp" + number + what);
        return ptx_with({"cl_ext_float_atomics", "cl_khr_fp16"}, features,
                        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
                        "kernel void k(volatile global atomic_" +
                            type + "* g, volatile local atomic_" + type + "* l, global " + type +
                            "* p) { volatile atomic_" + type + "* any = *p > 1 ? g : (volatile atomic_" + type +
                            "*)l; p[1] = " + operation + "(g + 1, p[2]); " + operation +
                            "(l, p[3]); p[4] = " + operation + "(any, p[5]); }",
                        processor);
    };
    for (const char* processor : all_processors) {
        for (const auto& [type, instruction] :
             {std::pair{"half", "add.noftz.f16"}, {"float", "add.f32"}, {"double", "add.f64"}}) {
            const PtxOutcome added = ptx_for(type, "atomic_fetch_add", processor);
            EXPECT_EQ(added.error, "") << processor;
            EXPECT_HAS(added, instruction);
            EXPECT_EQ(added.has(".cas."), std::string_view(type) == "float") << added.code.code;
            const PtxOutcome subtracted = ptx_for(type, "atomic_fetch_sub", processor);
            EXPECT_EQ(subtracted.error, "") << type << " " << processor;
            EXPECT_HAS(subtracted, instruction);
            EXPECT_EQ(subtracted.has(".cas."), std::string_view(type) == "float") << subtracted.code.code;
            EXPECT_EQ(ptx_for(type, "atomic_exchange", processor).error, "") << type << " " << processor;
            for (const char* extremum : {"atomic_fetch_min", "atomic_fetch_max"}) {
                const PtxOutcome found = ptx_for(type, extremum, processor);
                EXPECT_EQ(found.error, "") << type << " " << processor;
                EXPECT_HAS(found, ".cas.b");
            }
        }
    }
}

// Where the operand is known, one way remains. Local memory keeps subnormal numbers, and -cl-denorms-are-zero wants none.
TEST(Nvptx, AdditionsOfFloats_LoopForSmallOperandsOnly) {
    const auto added = [](const std::string& update) {
        return ptx_with(
            {"cl_ext_float_atomics"}, {"__opencl_c_ext_fp32_global_atomic_add", "__opencl_c_ext_fp32_local_atomic_add"},
            "kernel void k(volatile global atomic_float* g, volatile local atomic_float* l, global float* p)"
            " { p[0] = " +
                update + "; }",
            "sm_90");
    };
    for (const char* exact :
         {"atomic_fetch_add(g, 1.0f)", "atomic_fetch_sub(g, -1e-30f)", "atomic_fetch_add(g, 0x1p-101f)",
          "atomic_fetch_add(g, -INFINITY)", "atomic_fetch_add(l, p[1])"}) {
        const PtxOutcome outcome = added(exact);
        EXPECT_EQ(outcome.error, "") << exact;
        EXPECT_HAS(outcome, "add.f32");
        EXPECT_FALSE(outcome.has(".cas.")) << exact << outcome.code.code;
    }
    for (const char* small :
         {"atomic_fetch_add(g, 0x1p-102f)", "atomic_fetch_sub(g, 1e-40f)", "atomic_fetch_add(g, p[1])"}) {
        const PtxOutcome outcome = added(small);
        EXPECT_EQ(outcome.error, "") << small;
        EXPECT_HAS(outcome, "add.rn.f32");
        EXPECT_HAS(outcome, ".cas.b32");
    }
}

TEST(Nvptx, GenericPointers_KnowTheirSpace) {
    const PtxOutcome ptx =
        one_kernel("int f(int* p) { return to_global(p) ? 1 : to_local(p) ? 2 : 3; }"
                   "kernel void k(global int* a, local int* l, int i) {"
                   "  int x = i; int* p = i == 0 ? (int*)a : i == 1 ? (int*)l : &x; a[1] = f(p) + *p; }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_HAS(ptx, "isspacep.global");
    EXPECT_HAS(ptx, "isspacep.shared");
    const PtxOutcome typed = one_kernel("kernel void k(global int* a, local int* l) { a[1] = to_local(l) == l; }");
    EXPECT_FALSE(typed.has("isspacep")) << typed.code.code;
}

TEST(Nvptx, ConstantMemory_IsGlobal) {
    const PtxOutcome ptx = one_kernel("constant float table[] = {1, 2, 3, 4};"
                                      "kernel void k(global float* a, constant float* b, int i) {"
                                      "  a[0] = table[i] + b[i]; }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_FALSE(ptx.has("ld.const")) << ptx.code.code;
    EXPECT_EQ(ptx.code.parameters[1].kind, driver::KernelParameter::Kind::constant_pointer);
}

TEST(Nvptx, ProgramVariables_AreReachedThroughTheHiddenArgument) {
    const Outcome built = build("global int c = 7; global int* global p = &c;"
                                "kernel void k(global int* a) { a[0] = *p + ++c; }",
                                "-cl-std=CL3.0");
    ASSERT_EQ(built.status, Status::success) << built.log;
    EXPECT_TRUE(built.module->kernels().front().uses_program_variables);
    EXPECT_EQ(built.module->program_variables().relocations.size(), 1u);
    const PtxOutcome ptx = ptx_of(built.module, "k");
    EXPECT_EQ(ptx.error, "");
    const uint64_t offset =
        ptx_hidden_offset(ptx.code.arguments_size) + offsetof(PtxHiddenArguments, program_variables);
    EXPECT_HAS(ptx, "+" + std::to_string(offset) + "]");
}

TEST(Nvptx, Printf_FillsARing) {
    const PtxOutcome ptx = one_kernel("kernel void k(global int* a, float4 v) {"
                                      "  a[0] = printf(\"%d %s %v4f%%\\n\", a[1], a[2] ? \"yes\" : \"no\", v); }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_NE(ptx.code.print, nullptr);
    EXPECT_HAS(ptx, "atom.global.add.u64");
    EXPECT_EQ(one_kernel("kernel void k(global int* a) { *a = 1; }").code.print, nullptr);
}

TEST(Nvptx, WorkGroupFunctions) {
    const PtxOutcome ptx = one_kernel(
        "kernel void k(global int* a, global float* f) { int i = get_global_id(0);"
        "  a[i] = work_group_reduce_add(a[i]) + work_group_scan_inclusive_max(a[i]) + work_group_broadcast(a[i], 2)"
        "       + work_group_any(a[i]) + work_group_all(a[i]); f[i] = work_group_scan_exclusive_add(f[i]); }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_HAS(ptx, "bar.sync");
    EXPECT_EQ(ptx.code.local_bytes, 8192u);
}

// A target with all extensions of sub-groups.
PtxOutcome sub_group_kernel(const std::string& source, const std::string& processor,
                            const std::optional<WorkGroups>& groups = {}) {
    return ptx_with({"cl_khr_subgroup_ballot", "cl_khr_subgroup_clustered_reduce", "cl_khr_subgroup_shuffle",
                     "cl_khr_subgroup_non_uniform_arithmetic", "cl_khr_fp16", "cl_intel_subgroups"},
                    {}, source, processor, groups);
}

TEST(Nvptx, SubGroups_AreWarps) {
    const std::string source =
        "kernel void k(global int* a, global float* f, global long* l) { size_t i = get_global_id(0);"
        "  a[i] = sub_group_reduce_add(a[i]) + sub_group_scan_exclusive_max(a[i]) + sub_group_broadcast(a[i], 2);"
        "  if (a[i] & 1) a[i] = sub_group_ballot(a[i] > 5).x + sub_group_non_uniform_reduce_xor(a[i]);"
        "  f[i] = sub_group_reduce_min(f[i]) + sub_group_clustered_reduce_add(f[i], 4);"
        "  l[i] = sub_group_shuffle_xor(l[i], 3) + get_sub_group_id() + get_sub_group_local_id();"
        "  sub_group_barrier(CLK_GLOBAL_MEM_FENCE); a[i] += intel_sub_group_shuffle_down(a[i], 1, 2); }";
    for (const char* processor : all_processors) {
        const PtxOutcome ptx = sub_group_kernel(source, processor);
        EXPECT_EQ(ptx.error, "") << processor;
        for (const char* instruction :
             {"shfl.sync.idx.b32", "vote.sync.ballot.b32", "activemask.b32", "bar.warp.sync", "%laneid"})
            EXPECT_HAS(ptx, instruction);
        EXPECT_EQ(ptx.has("redux.sync.add"), std::string_view(processor) != "sm_70") << processor;
        EXPECT_EQ(ptx.has("redux.sync.xor"), std::string_view(processor) != "sm_70") << processor;
        EXPECT_EQ(count(ptx.code.code, "bar.sync"), 0u);
        EXPECT_EQ(ptx.code.local_bytes, 0u);
    }
}

// Only smaller work-groups are numbered anew, and not where all are known to be whole.
TEST(Nvptx, SubGroupsOfSmallerWorkGroups_AreNumberedInOrder) {
    const std::string source = "kernel void k(global uint* a) { a[get_global_id(0) + 100 * get_global_id(1)] ="
                               "  get_sub_group_local_id() + get_sub_group_size(); }";
    const PtxOutcome any = sub_group_kernel(source, "sm_90");
    EXPECT_EQ(any.error, "");
    EXPECT_HAS(any, "div.u32");
    const WorkGroups whole{{8, 8, 1}, WorkGroups::Ends::whole};
    const PtxOutcome known = sub_group_kernel(source, "sm_90", whole);
    EXPECT_EQ(known.error, "");
    EXPECT_FALSE(known.has("div.u32"));
    const PtxOutcome without = one_kernel("kernel void k(global uint* a) { a[get_global_id(0)] = get_local_id(0); }");
    EXPECT_FALSE(without.has("div.u32"));
}

TEST(Nvptx, ARequiredSubGroupSize_IsThatOfAWarp) {
    EXPECT_EQ(one_kernel("kernel __attribute__((intel_reqd_sub_group_size(32))) void k() {}").error, "");
    EXPECT_NE(one_kernel("kernel __attribute__((intel_reqd_sub_group_size(16))) void k() {}").error.find("16"),
              std::string::npos);
}

// The cycles of a multiprocessor are no clock of the whole device.
TEST(Nvptx, Clocks_AreTimerAndCycles) {
    for (const char* processor : all_processors) {
        const auto clock = [&](const std::string& scope) {
            return ptx_with({"cl_khr_kernel_clock"},
                            {"__opencl_c_kernel_clock_scope_device", "__opencl_c_kernel_clock_scope_work_group",
                             "__opencl_c_kernel_clock_scope_sub_group"},
                            "kernel void k(global ulong* a) { a[0] = clock_read_" + scope + "(); a[1] = clock_read_" +
                                scope + "(); a[2] = clock_read_hilo_" + scope + "().y; }",
                            processor);
        };
        const PtxOutcome device = clock("device");
        EXPECT_EQ(device.error, "");
        EXPECT_EQ(count(device.code.code, "%globaltimer;"), 3u);
        for (const char* scope : {"work_group", "sub_group"}) {
            const PtxOutcome own = clock(scope);
            EXPECT_EQ(own.error, "");
            EXPECT_EQ(count(own.code.code, "%clock64;"), 3u) << scope;
        }
    }
}

PtxOutcome zeroed_kernel(const std::string& source, const ZeroedMemory& zeroed, const std::string& processor) {
    const Outcome built = build(source);
    EXPECT_EQ(built.status, Status::success) << built.log;
    PtxOutcome outcome;
    const auto opened = open_zeroed(built.module, ptx_target(processor), zeroed);
    if (!opened)
        return {nullptr, {}, std::string{opened.error().detail()}};
    outcome.executable = *opened;
    const auto code = outcome.executable->code(built.module->kernels().front().name, CodeVersion{});
    if (!code)
        return {nullptr, {}, std::string{code.error().detail()}};
    outcome.code = std::get<driver::TargetCode>(**code);
    if (!ptxas().empty())
        outcome.error = assembler_errors(outcome.code.code, processor);
    return outcome;
}

// What a launch gives is as large as a register says.
TEST(Nvptx, ZeroedMemory) {
    const std::string source = "kernel void k(global int* a, local char* l) { local char own[OWN]; int array[40];"
                               "  a[get_global_id(0)] = own[a[0]] + l[a[1]] + array[a[2]]; }";
    const auto sized = [&](const char* bytes) {
        std::string text = source;
        return text.replace(text.find("OWN"), 3, bytes);
    };
    for (const char* processor : all_processors) {
        const PtxOutcome small = zeroed_kernel(sized("37"), {true, true}, processor);
        EXPECT_EQ(small.error, "");
        EXPECT_HAS(small, "%dynamic_smem_size");
        EXPECT_HAS(small, "polder_own_local[37]");
        EXPECT_HAS(small, "st.local");
        EXPECT_EQ(small.code.local_bytes, 37u);
        const PtxOutcome large = zeroed_kernel(sized("50001"), {true, false}, processor);
        EXPECT_EQ(large.error, "");
        EXPECT_EQ(large.code.dynamic_local_bytes, 50001u);
        EXPECT_FALSE(large.has("polder_own_local"));
        const PtxOutcome without = zeroed_kernel(sized("37"), {}, processor);
        EXPECT_FALSE(without.has("%dynamic_smem_size"));
    }
}

TEST(Nvptx, AsynchronousCopies_AreSharedByTheGroup) {
    const PtxOutcome ptx = one_kernel("kernel void k(global float4* a) { local float4 l[64];"
                                      "  event_t e = async_work_group_copy(l, a, 64, 0); wait_group_events(1, &e);"
                                      "  a[get_local_id(0)] = l[63 - get_local_id(0)]; }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_HAS(ptx, "bar.sync");
    EXPECT_HAS(ptx, "%tid.x");
}

TEST(Nvptx, NativeFunctions_AreTheProcessorsOwn) {
    const PtxOutcome ptx = one_kernel("kernel void k(global float* a) { *a = native_sin(*a) + native_exp(*a)"
                                      " + native_log2(*a) + native_rsqrt(*a) + native_divide(*a, 3.0f); }");
    EXPECT_EQ(ptx.error, "");
    for (const char* words : {"sin.approx.f32", "ex2.approx.f32", "lg2.approx.f32", "rsqrt.approx.f32", "div.full.f32"})
        EXPECT_HAS(ptx, words);
}

// Work-items of a warp that leave the copies of a body in different places wait for each other at each of them.
TEST(Nvptx, LoopsOfManyExits_AreNotUnrolledInPart) {
    const auto source = [](const std::string& condition) {
        return "kernel void k(global float* a, uint n) { float x = a[0]; uint i = 0;"
               "  for (; i < 500" +
               condition + "; ++i) x = x * x + a[1]; a[2] = x + i; }";
    };
    const PtxOutcome joined = one_kernel(source(" && x < 4.0f"));
    EXPECT_EQ(count(joined.code.code, "fma.rn"), 1u);
    EXPECT_EQ(count(joined.code.code, "bra"), 3u) << "of the guard, of the first test, of the loop\n"
                                                  << joined.code.code;
    const PtxOutcome two_exits = one_kernel(source(" && (x < 4.0f || a[3 + i] > 1.0f)"));
    EXPECT_EQ(count(two_exits.code.code, "fma.rn"), 1u);
    EXPECT_EQ(count(two_exits.code.code, "nounroll"), 0u);
    EXPECT_GT(count(one_kernel(source("")).code.code, "fma.rn"), 1u);
}

TEST(Nvptx, DoublesAndMathFunctions) {
    const PtxOutcome ptx = one_kernel("kernel void k(global double* a, global float* b) {"
                                      "  *a = sin(*a) + exp(*a) + pow(*a, 3.5) + fmod(*a, 0.3) + sqrt(*a) + tgamma(*a);"
                                      "  int e; float f; *b = sin(*b) + fract(*b, &f) + f + frexp(*b, &e) + e"
                                      "     + lgamma_r(*b, &e) + remquo(*b, 2.0f, &e) + convert_float_rtz(*a); }");
    EXPECT_EQ(ptx.error, "");
    EXPECT_HAS(ptx, "fma.rn.f64");
}

TEST(Nvptx, WhatIsMissing_IsNamed) {
    const Outcome built = build("int f(int x) { return x ? f(x - 1) + (int)get_global_id(0) : 0; }"
                                "kernel void k(global int* a) { *a = f(*a); }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    EXPECT_NE(ptx_of(built.module, "k").error.find("recursive"), std::string::npos);
}

}  // namespace
}  // namespace polder::compiler::test
