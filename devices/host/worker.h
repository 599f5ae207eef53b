// Worker: a thread of a WorkerPool, with what it executes work-groups in and what wakes it. Used by the pool alone.
#pragma once

#include <host/parker.h>
#include <host/spin_time.h>
#include <host/worker_pool.h>
#include <host/workspace.h>
#include <pthread.h>

namespace polder::devices {

class Worker {
public:
    Worker(WorkerPool& owner, WorkerPlace where) : pool(owner), place(where), workspace(owner.local_memory()) {}

    WorkerPool& pool;
    const WorkerPlace place;
    Parker parker;
    SpinTime spinning;
    Workspace workspace;
    pthread_t thread{};
    Worker* next_idle = nullptr;
    // Guarded by the pool's mutex, as is the member before.
    bool is_in_idle_list = false;
    bool is_coming = true;  // it was woken or started, and has not looked for work since

    static void* main(void* argument) {
        auto& me = *static_cast<Worker*>(argument);
        current = &me;
        if (me.pool.options_.enter_thread)
            me.pool.options_.enter_thread();
        me.pool.work(me);
        return nullptr;
    }

    [[gnu::tls_model("initial-exec")]] static constinit thread_local Worker* current;
};

}  // namespace polder::devices
