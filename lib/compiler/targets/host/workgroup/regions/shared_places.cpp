#include "shared_places.h"

namespace polder::compiler::workgroup {

llvm::DenseMap<const llvm::Instruction*, const llvm::Instruction*>
share_places(llvm::ArrayRef<llvm::Instruction*> values, const Cuts& cuts, const Liveness& liveness,
             llvm::function_ref<bool(const llvm::Instruction&, const llvm::Instruction&)> fits) {
    struct Place {
        const llvm::Instruction* first;
        llvm::BitVector cuts;  // at which one of its values is live
    };
    llvm::DenseMap<const llvm::Instruction*, llvm::BitVector> cuts_of;
    unsigned number = 0;
    for (llvm::BasicBlock* cut : cuts) {
        for (llvm::Instruction* value : liveness.live_in(*cut)) {
            llvm::BitVector& its = cuts_of[value];
            its.resize(static_cast<unsigned>(cuts.size()));
            its.set(number);
        }
        ++number;
    }
    llvm::SmallVector<Place> places;
    llvm::DenseMap<const llvm::Instruction*, const llvm::Instruction*> found;
    for (llvm::Instruction* value : values) {
        const llvm::BitVector& its = cuts_of[value];
        auto* const place = llvm::find_if(
            places, [&](const Place& each) { return fits(*each.first, *value) && !each.cuts.anyCommon(its); });
        if (place == places.end()) {
            places.push_back({value, its});
            found[value] = value;
        } else {
            place->cuts |= its;
            found[value] = place->first;
        }
    }
    return found;
}

}  // namespace polder::compiler::workgroup
