#include "machine_pool.h"

#include <algorithm>
#include <exception>

namespace polder::compiler {
namespace {

bool is_for(const llvm::TargetMachine& machine, const Host& target, llvm::CodeGenOptLevel level) {
    return machine.getOptLevel() == level && machine.getTargetTriple() == target.triple &&
           machine.getTargetCPU() == target.cpu && machine.getTargetFeatureString() == target.features;
}

}  // namespace

MachinePool& MachinePool::get() {
    static auto* const instance = new MachinePool;
    return *instance;
}

EmittingMachine MachinePool::take(const Host& target, llvm::CodeGenOptLevel level) {
    {
        const Lock lock(mutex_);
        const auto found =
            std::ranges::find_if(machines_, [&](const auto& each) { return is_for(*each, target, level); });
        if (found != machines_.end()) {
            std::swap(*found, machines_.back());
            EmittingMachine machine = std::move(machines_.back());
            machines_.pop_back();
            return machine;
        }
    }
    auto machine = create_target_machine(target);
    machine->setOptLevel(level);
    return EmittingMachine{std::move(machine)};
}

void MachinePool::put(EmittingMachine machine, llvm::CodeGenOptLevel level) {
    if (machine->getOptLevel() != level)
        return;
    const Lock lock(mutex_);
    if (machines_.size() < size_max)
        machines_.push_back(std::move(machine));
}

void MachinePool::clear() {
    std::vector<EmittingMachine> destroyed;
    destroyed.reserve(size_max);
    const Lock lock(mutex_);
    destroyed.swap(machines_);
}

PooledMachine::PooledMachine(MachinePool& pool, const Host& target, llvm::CodeGenOptLevel level)
    : pool_(pool), level_(level), machine_(pool.take(target, level)), exceptions_(std::uncaught_exceptions()) {}

PooledMachine::~PooledMachine() {
    if (std::uncaught_exceptions() == exceptions_)
        pool_.put(std::move(machine_), level_);
}

}  // namespace polder::compiler
