// Powers of the elements of pictures whose rows have 30 elements of four numbers, in groups that the implementation chooses: whole vectors leave 14 work-items of each row
// over. Rows are apart by bytes, as in the Arm Compute Library.
kernel void rows_of_thirty(global const uchar* bases, global const uchar* exponents, global uchar* powers, uint row,
                           uint plane, uint first) {
    const size_t place = first + get_global_id(0) * sizeof(float4) + get_global_id(1) * row + get_global_id(2) * plane;
    const float4 base = vload4(0, (global const float*)(bases + place));
    const float4 exponent = vload4(0, (global const float*)(exponents + place));
    vstore4(pow(base, exponent), 0, (global float*)(powers + place));
}
