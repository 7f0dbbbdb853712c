#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn bf16_is_reported_where_the_kernel_lists_it() {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").expect("cpuinfo");
    let listed = cpuinfo.split_whitespace().any(|flag| flag == "avx512_bf16");

    assert_eq!(super::cpu_has_bf16(), listed);
}
