// The time per work-group is estimated from earlier launches of the kernel. A launch that is expected to be short runs on this thread alone;
// when it takes longer, the rest is shared with other threads. A longer launch, or one of unknown length,
// is shared at once with as many threads as make it faster (threads_that_pay). While the kernel's code is measured beside another form of it (code_contest.h), a
// thread executes pieces of its share in both forms in turns; a launch that is too small for that is executed in one form.
#include <algorithm>
#include <host/block_run.h>
#include <host/clock.h>
#include <host/fault_report.h>
#include <host/float_environment.h>
#include <host/host_kernel.h>
#include <host/launch.h>
#include <host/print.h>

namespace polder::devices {
namespace {

// Waking a sleeping thread takes about this long. A shorter launch is faster on one thread.
constexpr float alone_ns = 8'000;
// Another thread is worth waking when it gets at least this much work, because waking it, taking chunks of a shared range
// and loading the kernel's bytes into its core's cache take time.
constexpr float thread_share_ns = 5'000;
// A chunk of work-groups takes about this long, where groups are smaller.
constexpr float chunk_ns = 4'000;
// So does a piece that is executed in one of two forms.
constexpr float piece_ns = 20'000;
// Launches with fewer work-groups are executed in one form.
constexpr uint64_t groups_to_divide = 8;

struct GroupId {
    uint64_t id[3];

    GroupId(uint64_t index, const uint64_t (&counts)[3])
        : id{index % counts[0], index / counts[0] % counts[1], index / counts[0] / counts[1]} {}

    void advance(const uint64_t (&counts)[3]) {
        if (++id[0] < counts[0])
            return;
        id[0] = 0;
        if (++id[1] < counts[1])
            return;
        id[1] = 0;
        ++id[2];
    }
};

void run_groups(const LaunchRecord& launch, const driver::HostCode& code, UnitRange groups, Workspace& workspace) {
    const WorkGroupFunction function = code.function;
    GroupId group(groups.begin, launch.context.num_groups);
    fault_report::prepare_thread();
    running_groups = {launch.kernel, group.id};
    const KernelFloatEnvironment environment(code.flushes_subnormals);
    for (uint64_t i = groups.begin; i < groups.end; ++i) {
        function(launch.arguments, &launch.context, group.id, workspace.local(), workspace.scratch());
        group.advance(launch.context.num_groups);
    }
    running_groups.kernel = nullptr;
}

uint64_t groups_in(float ns, float group_ns) {
    return static_cast<uint64_t>(std::max(1.0f, ns / std::max(group_ns, 0.01f)));
}

uint64_t ns_of_groups(const LaunchRecord& launch, const driver::HostCode& code, UnitRange groups,
                      Workspace& workspace) {
    const uint64_t began_ns = now_ns();
    run_groups(launch, code, groups, workspace);
    return now_ns() - began_ns;
}

uint64_t work_ns_of_groups(const LaunchRecord& launch, const driver::HostCode& code, UnitRange groups,
                           Workspace& workspace) {
    const uint64_t began_ns = work_ns();
    run_groups(launch, code, groups, workspace);
    return work_ns() - began_ns;
}

uint64_t groups_of_piece(const LaunchRecord& launch) {
    return groups_in(piece_ns, launch.kernel->item_ns_in_pieces() * static_cast<float>(launch.items_per_group));
}

// Executes pairs of pieces with as many groups, each pair in both forms.
void run_in_turns(const LaunchRecord& launch, UnitRange groups, Workspace& workspace) {
    using First = CodeContest::First;
    CodeContest& contest = launch.kernel->contest;
    for (uint64_t begin = groups.begin; begin < groups.end;) {
        const uint64_t piece = std::min(groups_of_piece(launch), (groups.end - begin) / 2);
        if (piece == 0) {
            run_groups(launch, *launch.code, {begin, groups.end}, workspace);
            return;
        }
        const First first = contest.first();
        const bool is_code_first = first == First::current;
        const UnitRange halves[] = {{begin, begin + piece}, {begin + piece, begin + 2 * piece}};
        const uint64_t before =
            work_ns_of_groups(launch, is_code_first ? *launch.code : *launch.rival, halves[0], workspace);
        const uint64_t after =
            work_ns_of_groups(launch, is_code_first ? *launch.rival : *launch.code, halves[1], workspace);
        contest.add({launch.code, launch.rival}, first, is_code_first ? before : after, is_code_first ? after : before);
        launch.kernel->learn_in_pieces(static_cast<float>(before + after) /
                                       static_cast<float>(2 * piece * launch.items_per_group));
        begin += 2 * piece;
    }
}

// Executes the groups that a thread has taken.
void run_share(const LaunchRecord& launch, UnitRange groups, Workspace& workspace) {
    if (launch.rival != nullptr) [[unlikely]]
        run_in_turns(launch, groups, workspace);
    else
        run_groups(launch, *launch.code, groups, workspace);
}

Workspace::Growth prepare(void* context, Workspace& workspace) {
    const auto& launch = *static_cast<const LaunchRecord*>(context);
    return workspace.prepare(launch.local_bytes, launch.scratch_bytes);
}

void report_work(const LaunchRecord& launch, uint64_t ns) {
    if (launch.kernel->contest.wants_times())
        launch.kernel->contest.worked(ns);
}

// Executes a launch of one group, or on a device with one thread. Reading the clock takes as long as a small group, so few launches are measured.
void run_here(const LaunchRecord& launch, Workspace& workspace) {
    const UnitRange all{0, launch.group_count};
    if (launch.kernel->times_this()) [[unlikely]] {
        const uint64_t ns = ns_of_groups(launch, *launch.code, all, workspace);
        // How many groups are a piece, once there is another form.
        if (launch.group_count > 1)
            launch.kernel->learn(static_cast<float>(ns) /
                                 static_cast<float>(launch.group_count * launch.items_per_group));
        launch.kernel->took(ns);
    } else {
        run_groups(launch, *launch.code, all, workspace);
    }
}

// Executes groups on this thread as long as that is faster than waking other threads. Returns how many it has executed.
uint64_t run_alone(LaunchRecord& launch, Workspace& workspace, float group_ns) {
    const uint64_t began_ns = now_ns();
    const uint64_t chunk = groups_in(chunk_ns, group_ns);
    uint64_t done = 0;
    float elapsed_ns = 0;
    while (done < launch.group_count && elapsed_ns < alone_ns) {
        const uint64_t end = std::min(launch.group_count, done + chunk);
        run_groups(launch, *launch.code, {done, end}, workspace);
        done = end;
        elapsed_ns = static_cast<float>(now_ns() - began_ns);
    }
    launch.kernel->learn(elapsed_ns / static_cast<float>(done * launch.items_per_group));
    report_work(launch, static_cast<uint64_t>(elapsed_ns));
    return done;
}

// A launch on several threads, and the sum of the time that they spent in it.
struct SharedLaunch {
    LaunchRecord& launch;
    std::atomic<uint64_t> thread_ns{0};
};

void run_together(LaunchRecord& launch, uint64_t first, WorkerPool& pool, Workspace& workspace, float group_ns) {
    SharedLaunch shared{launch};
    const uint64_t count = launch.group_count - first;
    const auto run = [](void* context, UnitRange groups, Workspace& own) {
        auto& all = *static_cast<SharedLaunch*>(context);
        const uint64_t began_ns = now_ns();
        run_share(all.launch, groups, own);
        all.thread_ns.fetch_add(now_ns() - began_ns, std::memory_order_relaxed);
    };
    const auto prepare_shared = [](void* context, Workspace& own) {
        return prepare(&static_cast<SharedLaunch*>(context)->launch, own);
    };
    const LaunchWidth::Choice width = launch.kernel->width.choose(threads_that_pay(group_ns, count, pool.width()),
                                                                  count, group_ns * static_cast<float>(count));
    const uint64_t began_ns = width.is_observed ? now_ns() : 0;
    // A chunk in two forms has a piece for each.
    const uint64_t chunk_min = group_ns == 0             ? 1
                               : launch.rival != nullptr ? 2 * groups_of_piece(launch)
                                                         : groups_in(chunk_ns, group_ns);
    ParallelTask task({.units = {first, launch.group_count},
                       .chunk_min = std::min(chunk_min, std::max<uint64_t>(2, count / (uint64_t{2} * width.threads))),
                       .threads_max = width.threads,
                       .queue = launch.queue,
                       .stack_bytes = launch.stack_bytes},
                      &shared, run, prepare_shared);
    pool.run(task, workspace);
    if (width.is_observed)
        launch.kernel->width.observe(width, static_cast<float>(now_ns() - began_ns));
    const uint64_t thread_ns = shared.thread_ns.load(std::memory_order_relaxed);
    launch.kernel->learn(static_cast<float>(thread_ns) / static_cast<float>(count * launch.items_per_group));
    report_work(launch, thread_ns);
}

// Separate from execute_launch, because few kernels enqueue blocks.
[[gnu::noinline]] Status execute_with_blocks(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace) {
    BlockRun blocks(launch, pool, workspace);
    const Status status = execute_kernel(launch, pool, workspace);
    return status == Status::success ? blocks.finish() : status;
}

}  // namespace

void set_range(LaunchRecord& launch, const LaunchRange& range) {
    LaunchContext& context = launch.context;
    context.work_dim = range.work_dim;
    launch.group_count = 1;
    launch.items_per_group = 1;
    for (uint32_t d = 0; d < 3; ++d) {
        const bool used = d < range.work_dim;
        context.global_offset[d] = used ? range.global_offset[d] : 0;
        context.global_size[d] = used ? range.global_size[d] : 1;
        context.local_size[d] = used ? range.local_size[d] : 1;
        context.num_groups[d] = (context.global_size[d] + context.local_size[d] - 1) / context.local_size[d];
        launch.group_count *= context.num_groups[d];
        launch.items_per_group *= context.local_size[d];
    }
}

void set_memory(LaunchRecord& launch, uint64_t local_bytes) {
    launch.local_bytes = local_bytes;
    launch.context.local_bytes = static_cast<uint32_t>(local_bytes);
}

uint32_t threads_that_pay(float group_ns, uint64_t group_count, uint32_t threads_max) {
    const auto most = static_cast<uint32_t>(std::min<uint64_t>(threads_max, group_count));
    // A kernel that was never launched may take long, so all threads take part.
    if (group_ns == 0)
        return most;
    const float shares = group_ns * static_cast<float>(group_count) / thread_share_ns;
    return shares >= static_cast<float>(most) ? most : std::max(1u, static_cast<uint32_t>(shares));
}

bool is_large(const LaunchRecord& launch) {
    const float item_ns = launch.kernel->item_ns();
    if (item_ns == 0)
        return launch.group_count > 1;
    return item_ns * static_cast<float>(launch.group_count * launch.items_per_group) > 2 * alone_ns;
}

Status execute_code(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace) {
    if (prepare(&launch, workspace) != Workspace::Growth::enough)
        return Status::out_of_resources;
    const float group_ns = launch.kernel->item_ns() * static_cast<float>(launch.items_per_group);
    if (launch.group_count == 1 || (pool.width() == 1 && launch.rival == nullptr)) {
        run_here(launch, workspace);
        return Status::success;
    }
    const float total_ns = group_ns * static_cast<float>(launch.group_count);
    uint64_t done = 0;
    if (group_ns != 0 && total_ns < 2 * alone_ns)
        done = run_alone(launch, workspace, group_ns);
    if (done < launch.group_count)
        run_together(launch, done, pool, workspace, group_ns);
    return Status::success;
}

// Executes the launch while its code is measured beside another form.
[[gnu::noinline]] Status execute_in_forms(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace) {
    CodeContest& contest = launch.kernel->contest;
    const CodeContest::Turn turn{launch.code, launch.rival};
    const float all_ns = launch.kernel->item_ns() * static_cast<float>(launch.group_count * launch.items_per_group);
    if (!contest.wants_whole() && launch.group_count >= groups_to_divide && (all_ns == 0 || all_ns >= 4 * piece_ns))
        return execute_code(launch, pool, workspace);
    launch.code = &contest.whole(turn, launch.group_count);
    launch.rival = nullptr;
    // The work of one thread is the time of the launch, without that of other programs.
    const auto clock = pool.width() == 1 ? work_ns : now_ns;
    const uint64_t began_ns = clock();
    const Status status = execute_code(launch, pool, workspace);
    contest.add_whole(turn, *launch.code, launch.group_count, clock() - began_ns);
    return status;
}

Status execute_kernel(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace) {
    const CodeContest::Turn turn = launch.kernel->contest.turn(launch.stack_bytes);
    launch.code = turn.code;
    launch.rival = turn.rival;
    const uint64_t scratch = std::max(turn.code->scratch_bytes_per_work_item,
                                      turn.rival ? turn.rival->scratch_bytes_per_work_item : uint64_t{0});
    launch.scratch_bytes = scratch * launch.items_per_group + 4096;
    return turn.rival ? execute_in_forms(launch, pool, workspace) : execute_code(launch, pool, workspace);
}

Status execute_launch(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace) {
    const bool may_enqueue = launch.blocks.group_size_max != 0;
    const Status status =
        may_enqueue ? execute_with_blocks(launch, pool, workspace) : execute_kernel(launch, pool, workspace);
    if (launch.printed.load(std::memory_order_relaxed))
        flush_printed();
    return status;
}

}  // namespace polder::devices
