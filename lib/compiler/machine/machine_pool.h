// LLVM's target machines, kept for the next compilation. A machine caches what it computes from its processor's features and types, which
// takes 1.5 ms of a small kernel's compilation.
//
// The pool for the host's code is a leaked singleton; any thread may use it. A machine has one owner at a time: the pool, or one
// PooledMachine, which one thread uses.
#pragma once

#include "host.h"
#include "object_emitter.h"

#include <base/mutex.h>

#include <utility>
#include <vector>

namespace polder::compiler {

// A target machine with its code generator.
class EmittingMachine {
public:
    explicit EmittingMachine(std::unique_ptr<llvm::TargetMachine> machine)
        : parts_(std::make_unique<Parts>(std::move(machine))) {}

    [[nodiscard]] llvm::TargetMachine& operator*() const { return *parts_->machine; }
    [[nodiscard]] llvm::TargetMachine* operator->() const { return parts_->machine.get(); }
    [[nodiscard]] llvm::TargetMachine* get() const { return parts_->machine.get(); }
    [[nodiscard]] ObjectEmitter& emitter() const { return parts_->emitter; }

private:
    struct Parts {
        explicit Parts(std::unique_ptr<llvm::TargetMachine> its_machine)
            : machine(std::move(its_machine)), emitter(*machine) {}
        std::unique_ptr<llvm::TargetMachine> machine;
        ObjectEmitter emitter;  // destroyed before the machine
    };
    std::unique_ptr<Parts> parts_;
};

class MachinePool {
public:
    static constexpr size_t size_max = 4;

    [[nodiscard]] static MachinePool& get();

    MachinePool() { machines_.reserve(size_max); }

    // A machine for this triple, processor, features and level: a kept one, or a new one.
    [[nodiscard]] EmittingMachine take(const Host& target, llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default)
        POLDER_EXCLUDES(mutex_);
    // Keeps the machine, which was taken for `level`. Destroys it when its level was changed, because it may then have another instruction
    // selector, or when there is no room.
    void put(EmittingMachine machine, llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default)
        POLDER_EXCLUDES(mutex_);
    void clear() POLDER_EXCLUDES(mutex_);

private:
    Mutex mutex_;
    std::vector<EmittingMachine> machines_ POLDER_GUARDED_BY(mutex_);
};

// A machine for one compilation. It returns to the pool unless an exception ends the compilation; after a crash no destructor runs.
class PooledMachine {
public:
    PooledMachine(MachinePool& pool, const Host& target, llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default);
    PooledMachine(const PooledMachine&) = delete;
    PooledMachine& operator=(const PooledMachine&) = delete;
    ~PooledMachine();

    [[nodiscard]] llvm::TargetMachine& operator*() const { return *machine_; }
    [[nodiscard]] llvm::TargetMachine* operator->() const { return machine_.get(); }
    [[nodiscard]] ObjectEmitter& emitter() const { return machine_.emitter(); }

private:
    MachinePool& pool_;
    const llvm::CodeGenOptLevel level_;
    EmittingMachine machine_;
    const int exceptions_;
};

}  // namespace polder::compiler
