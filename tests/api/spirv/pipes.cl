// Kernels on pipes that are built from source and from Clang's module. A packet is a number; out has a word for each work-item.
kernel void one(write_only pipe uint p, global uint* out) {
    const uint i = get_global_id(0);
    out[i] = write_pipe(p, &i) == 0;
}
kernel void by_item(write_only pipe uint p, global uint* out) {
    const uint i = get_global_id(0);
    reserve_id_t id = reserve_write_pipe(p, 2);
    if (!is_valid_reserve_id(id))
        return;
    for (uint k = 0; k < 2; ++k) {
        const uint value = i * 2 + k;
        out[i] += write_pipe(p, id, k, &value) == 0;
    }
    commit_write_pipe(p, id);
}
kernel void by_group(write_only pipe uint p, global uint* out) {
    const uint i = get_global_id(0);
    reserve_id_t id = work_group_reserve_write_pipe(p, get_local_size(0));
    if (is_valid_reserve_id(id)) {
        out[i] = write_pipe(p, id, get_local_id(0), &i) == 0;
        work_group_commit_write_pipe(p, id);
    }
}
kernel void take(read_only pipe uint p, global uint* out) {
    uint value;
    if (read_pipe(p, &value) == 0)
        out[get_global_id(0)] = value + 1;
}
kernel void take_two(read_only pipe uint p, global uint* out) {
    const uint i = get_global_id(0);
    reserve_id_t id = reserve_read_pipe(p, 2);
    if (!is_valid_reserve_id(id))
        return;
    uint first, second;
    read_pipe(p, id, 0, &first);
    read_pipe(p, id, 1, &second);
    commit_read_pipe(p, id);
    out[i] = first + second + 1;
}
kernel void take_by_group(read_only pipe uint p, global uint* out) {
    reserve_id_t id = work_group_reserve_read_pipe(p, get_local_size(0));
    if (is_valid_reserve_id(id)) {
        uint value = 0;
        if (read_pipe(p, id, get_local_id(0), &value) == 0)
            out[get_global_id(0)] = value + 1;
        work_group_commit_read_pipe(p, id);
    }
}
kernel void count_read(read_only pipe uint p, global uint* out) {
    out[0] = get_pipe_num_packets(p);
    out[1] = get_pipe_max_packets(p);
}
kernel void count_written(write_only pipe uint p, global uint* out) {
    out[0] = get_pipe_num_packets(p);
    out[1] = get_pipe_max_packets(p);
}
