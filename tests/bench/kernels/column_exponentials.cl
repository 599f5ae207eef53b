// Exponentials of four columns, where neighbouring work-items are in different rows: without lanes, the four numbers of a work-item are one vector.
kernel void column_exponentials(global const float4* in, global float4* out, global const float4* greatest, global const float4* sums) {
    const int column = get_group_id(0) * 4 + get_local_id(1), row = (get_group_id(1) * 32 + get_local_id(0)) * 4;
    const float4 most = greatest[column], sum = sums[column];
    for (int k = 0; k < 4; ++k) {
        const float4 x = (in[(row + k) * 256 + column] - most) * 1.442695f;
        out[(row + k) * 256 + column] = (float4)(exp2(x.x), exp2(x.y), exp2(x.z), exp2(x.w)) / sum;
    }
}
