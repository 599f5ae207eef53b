#include <cuda/copy_pieces.h>
#include <cuda/enqueue_copy.h>
#include <limits>

namespace polder::cuda {
namespace {

using Place = driver::CopyOperation::Place;

struct Ends {
    DeviceAddress from;
    DeviceAddress to;
};

Code enqueue_row(const CudaApi& api, Stream stream, const driver::CopyOperation& copy, Ends at, uint64_t bytes) {
    if (copy.from.place == Place::host)
        return api.copy_in(at.to.value, at.from.host(), bytes, stream);
    if (copy.to.place == Place::host)
        return api.copy_out(at.to.host(), at.from.value, bytes, stream);
    return api.copy_within(at.to.value, at.from.value, bytes, stream);
}

Code enqueue_rows(const CudaApi& api, Stream stream, const driver::CopyOperation& copy, Ends at,
                  const CopyPiece& piece) {
    Copy3D rows;
    const auto describe = [&piece](CopyEnd3D& end, const driver::CopyOperation::End& of, DeviceAddress address) {
        end.type = of.place == Place::host ? memory_of_host : memory_by_address;
        end.host = of.place == Place::host ? address.host() : nullptr;
        end.device = of.place == Place::host ? 0 : address.value;
        end.pitch = of.layout.row_pitch;
        end.height = piece.rows;
    };
    describe(rows.from, copy.from, at.from);
    describe(rows.to, copy.to, at.to);
    rows.width_bytes = piece.row_bytes;
    rows.height = piece.rows;
    rows.depth = 1;
    return api.copy_3d(&rows, stream);
}

}  // namespace

Code enqueue_copy(const CudaApi& api, Stream stream, const driver::CopyOperation& copy) {
    // Without a limit, a piece is a whole slice.
    const CopyPieces pieces(copy, std::numeric_limits<uint64_t>::max());
    Code code = code_success;
    for (uint64_t i = 0; i < pieces.count() && code == code_success; ++i) {
        const CopyPiece piece = pieces[i];
        const Ends at{copy.from.address.plus(piece.from_offset), copy.to.address.plus(piece.to_offset)};
        code = piece.rows == 1 ? enqueue_row(api, stream, copy, at, piece.row_bytes)
                               : enqueue_rows(api, stream, copy, at, piece);
    }
    return code;
}

}  // namespace polder::cuda
