use lapax_cpu::{lu, InOut, Serial};
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut s = 1u64;
    let a: Vec<f64> = (0..n * n).map(|_| { s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); (s >> 40) as f64 / 1e7 - 0.8 }).collect();
    let mut x = a.clone(); let (mut p, mut i) = (vec![0; n], vec![0; 1]);
    let t = std::time::Instant::now(); let mut c = 0; let mut best = f64::MAX;
    while t.elapsed().as_secs_f64() < 2.0 { let o = std::time::Instant::now(); lu::getrf(1, n, n, InOut { src: Some(&a), dst: &mut x }, &mut p, &mut i, &Serial).unwrap(); c += 1; best = best.min(o.elapsed().as_secs_f64()); }
    println!("n={n} best {:.2} us  {:.2} GF mean {:.2}", best * 1e6, 2e-9 / 3.0 * (n as f64).powi(3) / best, t.elapsed().as_secs_f64() / c as f64 * 1e6);
}
