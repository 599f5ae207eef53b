// LLVM's target machines, kept for the next compilation. A machine caches what it computes from its processor's features and types, which
// takes 1.5 ms of a small kernel's compilation.
//
// The pool for the host's code is a leaked singleton; any thread may use it. A machine has one owner at a time: the pool, or one
// PooledMachine, which one thread uses.
#pragma once

#include "host.h"

#include <base/mutex.h>

#include <vector>

namespace polder::compiler {

class MachinePool {
public:
    static constexpr size_t size_max = 4;

    [[nodiscard]] static MachinePool& get();

    MachinePool() { machines_.reserve(size_max); }

    // A machine for this triple, processor and features: a kept one, or a new one.
    [[nodiscard]] std::unique_ptr<llvm::TargetMachine> take(const Host& target) POLDER_EXCLUDES(mutex_);
    // Keeps the machine. Destroys it when it was used without optimisation, because it then has another instruction selector, or when there is no room.
    void put(std::unique_ptr<llvm::TargetMachine> machine) POLDER_EXCLUDES(mutex_);
    void clear() POLDER_EXCLUDES(mutex_);

private:
    Mutex mutex_;
    std::vector<std::unique_ptr<llvm::TargetMachine>> machines_ POLDER_GUARDED_BY(mutex_);
};

// A machine for one compilation. It returns to the pool unless an exception ends the compilation; after a crash no destructor runs.
class PooledMachine {
public:
    PooledMachine(MachinePool& pool, const Host& target);
    PooledMachine(const PooledMachine&) = delete;
    PooledMachine& operator=(const PooledMachine&) = delete;
    ~PooledMachine();

    [[nodiscard]] llvm::TargetMachine& operator*() const { return *machine_; }
    [[nodiscard]] llvm::TargetMachine* operator->() const { return machine_.get(); }

private:
    MachinePool& pool_;
    std::unique_ptr<llvm::TargetMachine> machine_;
    const int exceptions_;
};

}  // namespace polder::compiler
