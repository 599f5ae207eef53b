#include "machine_pool.h"

#include <algorithm>
#include <exception>

namespace polder::compiler {
namespace {

bool is_for(const llvm::TargetMachine& machine, const Host& target) {
    return machine.getTargetTriple() == target.triple && machine.getTargetCPU() == target.cpu &&
           machine.getTargetFeatureString() == target.features;
}

}  // namespace

MachinePool& MachinePool::get() {
    static auto* const instance = new MachinePool;
    return *instance;
}

EmittingMachine MachinePool::take(const Host& target) {
    {
        const Lock lock(mutex_);
        const auto found = std::ranges::find_if(machines_, [&](const auto& each) { return is_for(*each, target); });
        if (found != machines_.end()) {
            std::swap(*found, machines_.back());
            EmittingMachine machine = std::move(machines_.back());
            machines_.pop_back();
            return machine;
        }
    }
    return EmittingMachine{create_target_machine(target)};
}

void MachinePool::put(EmittingMachine machine) {
    if (machine->getOptLevel() != llvm::CodeGenOptLevel::Default)
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

PooledMachine::PooledMachine(MachinePool& pool, const Host& target)
    : pool_(pool), machine_(pool.take(target)), exceptions_(std::uncaught_exceptions()) {}

PooledMachine::~PooledMachine() {
    if (std::uncaught_exceptions() == exceptions_)
        pool_.put(std::move(machine_));
}

}  // namespace polder::compiler
