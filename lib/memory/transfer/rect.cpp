// Splits a rectangle row by row where the source of the bytes changes, then joins equal neighbouring rows and equal slices to larger parts.
#include "rect.h"

namespace polder::memory {

namespace {

// More rows than this are recorded as one range where possible, because each separate row would make two pieces of the residency.
constexpr uint64_t few_rows = 16;
// Gaps between rows up to this size that were never written are recorded as written: moving their bytes once costs less than separate
// rows.
constexpr uint64_t small_gap_bytes = 4096;

bool has_few_rows(const StorageRect& rect) { return rect.shape.rows * rect.shape.slices <= few_rows; }

bool has_small_gaps(const StorageRect& rect) {
    const driver::RectShape& shape = rect.shape;
    const uint64_t slice_bytes = row_offset(rect.layout, shape.rows - 1, 0) + shape.row_bytes;
    return (shape.rows == 1 || rect.layout.row_pitch - shape.row_bytes <= small_gap_bytes) &&
           (shape.slices == 1 || rect.layout.slice_pitch - slice_bytes <= small_gap_bytes);
}

Rows span_of(const StorageRect& rect) {
    Rows span;
    span.push_back(rect.span());
    return span;
}

}  // namespace

Rows rows_of(const StorageRect& rect) {
    if (is_one_range(rect))
        return span_of(rect);
    Rows rows;
    for (uint64_t z = 0; z < rect.shape.slices; ++z) {
        for (uint64_t y = 0; y < rect.shape.rows; ++y) {
            const uint64_t begin = rect.offset + row_offset(rect.layout, y, z);
            if (!rows.empty() && rows.back().end == begin)
                rows.back().end += rect.shape.row_bytes;
            else
                rows.push_back(ByteRange::at(begin, ByteCount{rect.shape.row_bytes}));
        }
    }
    return rows;
}

Rows read_ranges_of(const StorageRect& rect) { return has_few_rows(rect) ? rows_of(rect) : span_of(rect); }

Rows written_ranges_of(const StorageRect& rect, const Residency& residency, SpaceId space) {
    if (is_one_range(rect) || has_few_rows(rect))
        return rows_of(rect);
    const SpaceSet written = residency.holders_after(space);
    const bool takes_unwritten = has_small_gaps(rect);
    bool changes_nothing_else = true;
    residency.visit(rect.span(), [&](ByteRange, const RangeState& state) {
        changes_nothing_else &= state.holders == written || (takes_unwritten && state.holders.empty());
    });
    return changes_nothing_else ? span_of(rect) : rows_of(rect);
}

SpaceId SourceChoice::operator()(SpaceSet holders) const {
    if (holders.contains(to))
        return to;
    if (is_host_memory(to) && (holders.contains(host_space) || holders.contains(application_space)))
        return topology.best_source(holders, to);
    return holders.contains(preferred) ? preferred : topology.best_source(holders, to);
}

namespace {

struct Held {
    const Residency& residency;
    const Replicas& replicas;
};

// Appends the parts of row (y, z).
void append_row(RectParts& parts, const Held& held, const StorageRect& rect, uint64_t y, uint64_t z,
                const SourceChoice& choice) {
    const uint64_t begin = rect.offset + row_offset(rect.layout, y, z);
    const uint32_t first = parts.size();
    const auto append = [&](SpaceId source, DeviceAddress base, ByteRange range) {
        const uint64_t x = range.begin - begin;
        if (parts.size() > first && parts.back().source == source && parts.back().base == base &&
            parts.back().x + parts.back().shape.row_bytes == x)
            parts.back().shape.row_bytes += range.size();
        else
            parts.push_back({source, base, x, y, z, {range.size(), 1, 1}});
    };
    const ByteRange row = ByteRange::at(begin, ByteCount{rect.shape.row_bytes});
    held.residency.visit(row, [&](ByteRange range, const RangeState& state) {
        if (state.holders.empty())
            return;
        const SpaceId source = choice(state.holders);
        held.replicas.visit(source, range, [&](const Replica& replica) {
            append(source, replica.base, replica.range.intersect(range));
        });
    });
}

// Joins the whole row that was appended last with the rows before it.
void join_rows(RectParts& parts, const StorageRect& rect) {
    if (parts.size() < 2)
        return;
    const RectPart row = parts.back();
    RectPart& before = parts[parts.size() - 2];
    if (row.shape.row_bytes == rect.shape.row_bytes && before.shape.row_bytes == rect.shape.row_bytes &&
        before.source == row.source && before.base == row.base && before.z == row.z && before.shape.slices == 1 &&
        before.y + before.shape.rows == row.y) {
        ++before.shape.rows;
        parts.resize_down(parts.size() - 1);
    }
}

// Joins the whole slice that was appended last with the slices before it.
void join_slices(RectParts& parts, const StorageRect& rect) {
    if (parts.size() < 2)
        return;
    const auto is_whole = [&](const RectPart& part) {
        return part.shape.row_bytes == rect.shape.row_bytes && part.shape.rows == rect.shape.rows;
    };
    const RectPart slice = parts.back();
    RectPart& before = parts[parts.size() - 2];
    if (is_whole(slice) && is_whole(before) && before.source == slice.source && before.base == slice.base &&
        before.z + before.shape.slices == slice.z) {
        ++before.shape.slices;
        parts.resize_down(parts.size() - 1);
    }
}

}  // namespace

std::optional<SpaceId> only_source(const Residency& residency, const StorageRect& rect, const SourceChoice& choice) {
    std::optional<SpaceId> source;
    bool is_only = true;
    residency.visit(rect.span(), [&](ByteRange, const RangeState& state) {
        if (!is_only)
            return;
        is_only = !state.holders.empty();
        if (!is_only)
            return;
        const SpaceId from = choice(state.holders);
        is_only = !source || *source == from;
        source = from;
    });
    return is_only ? source : std::nullopt;
}

RectParts split_by_source(const Residency& residency, const Replicas& replicas, const StorageRect& rect,
                          const SourceChoice& choice) {
    RectParts parts;
    if (const std::optional<SpaceId> source = only_source(residency, rect, choice))
        if (const Replica* const replica = replicas.find(*source, rect.span())) {
            parts.push_back({*source, replica->base, 0, 0, 0, rect.shape});
            return parts;
        }
    const Held held{residency, replicas};
    for (uint64_t z = 0; z < rect.shape.slices; ++z) {
        for (uint64_t y = 0; y < rect.shape.rows; ++y) {
            append_row(parts, held, rect, y, z, choice);
            join_rows(parts, rect);
        }
        join_slices(parts, rect);
    }
    return parts;
}

}  // namespace polder::memory
