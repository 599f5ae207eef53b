// Refusals: counts failed queries of whether an operation is complete. After a few failures the query is repeated; a GPU whose queries
// keep failing counts as lost, so that no thread waits for it forever. One thread.
#pragma once

#include <cuda/cuda_api.h>

namespace polder::cuda {

class Refusals {
public:
    // Of a query: success, not ready, or a failure. True when no later answer is to be expected.
    [[nodiscard]] bool are_final_after(Code code) {
        if (code == code_success || code == code_not_ready) {
            count_ = 0;
            return false;
        }
        return CudaApi::is_fatal(code) || ++count_ == most;
    }

private:
    static constexpr int most = 16;
    int count_ = 0;
};

}  // namespace polder::cuda
