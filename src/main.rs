fn main() {
    println!("{:?}", tch::Device::Cpu);
}
