//! RMS normalisation, the example of JAX's own FFI tutorial, as two custom calls in Rust; [`cuda`] has
//! them for GPUs.

pub mod cuda;

use xla_ffi::{Buffer, BufferMut, Error, Pattern, Sizes};

xla_ffi::handler! {
    /// y = x · s with s = 1 / √(mean(x²) + eps), along the last dimension.
    #[unsafe(no_mangle)]
    pub fn rms_norm(call: RmsNorm<'f>, _context) in Execute {
        args { x: Buffer<'f, f32> }
        rets { y: BufferMut<'f, f32>, s: BufferMut<'f, f32> }
        attrs { eps: f32 }
    } => {
        let RmsNorm { x, mut y, mut s, eps, .. } = call;
        let n = row_length(s.len(), &[x.len()])?;
        Pattern::like(&x).verify("y", &y, &mut Sizes::new())?;
        let inverse = inverse(n);
        for ((x, y), s) in x.chunks(n).zip(y.chunks_mut(n)).zip(s.iter_mut()) {
            *s = 1.0 / (x.iter().map(|x| x * x).sum::<f32>() * inverse + eps).sqrt();
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * *s);
        }
        Ok(())
    }
}

xla_ffi::handler! {
    /// The cotangent of x from that of y: s·ct − s³·x·(x·ct)/n.
    #[unsafe(no_mangle)]
    pub fn rms_norm_backward(call: Backward<'f>, _context) in Execute {
        args { s: Buffer<'f, f32>, x: Buffer<'f, f32>, ct: Buffer<'f, f32> }
        rets { ct_x: BufferMut<'f, f32> }
        attrs {}
    } => {
        let Backward { s, x, ct, mut ct_x, .. } = call;
        let n = row_length(s.len(), &[x.len()])?;
        let (inverse, mut sizes) = (inverse(n), Sizes::new());
        Pattern::like(&x).verify("ct", &ct, &mut sizes)?;
        Pattern::like(&x).verify("ct_x", &ct_x, &mut sizes)?;
        let rows = x.chunks(n).zip(ct.chunks(n)).zip(ct_x.chunks_mut(n)).zip(s.iter());
        for (((x, ct), ct_x), s) in rows {
            let dot = x.iter().zip(ct).map(|(x, ct)| x * ct).sum::<f32>() * inverse;
            for ((ct_x, x), ct) in ct_x.iter_mut().zip(x).zip(ct) {
                *ct_x = s * (ct - s * s * x * dot);
            }
        }
        Ok(())
    }
}

/// The length of a row of operands of so many numbers, of which s has one for each row.
fn row_length(rows: usize, lengths: &[usize]) -> Result<usize, Error> {
    let n = lengths[0].checked_div(rows).unwrap_or(0);
    if n > 0 && lengths.iter().all(|length| *length == n * rows) {
        return Ok(n);
    }
    let text = format!("expected s with one element for each row, got {rows} for {lengths:?}");
    Err(Error::invalid_argument(text))
}

fn inverse(n: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "the length of a row, as the formula has it")]
    return 1.0 / n as f32;
}

#[cfg(test)]
mod tests {
    use xla_ffi::fake::{Attr, Call, Host};

    use super::*;

    #[test]
    fn rows_have_mean_square_one() {
        let x = [3.0_f32, 4.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
        let (mut y, mut s) = ([0.0_f32; 8], [0.0_f32; 2]);
        let call = Call::new().arg(&[2, 4], &x).ret(&[2, 4], &mut y).ret(&[2], &mut s);
        let call = call.attr("eps", Attr::F32(0.0));
        assert_eq!(Host::new().execute(Some(rms_norm), &call), Ok(()));
        drop(call);
        assert_eq!((s, y), ([0.4, 1.0], [1.2, 1.6, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]));
    }

    #[test]
    fn wrong_shapes_are_named() {
        let x = [1.0_f32; 4];
        let (mut y, mut s) = ([0.0_f32; 4], [0.0_f32; 3]);
        let call = Call::new().arg(&[4], &x).ret(&[4], &mut y).ret(&[3], &mut s);
        let failure = Host::new().execute(Some(rms_norm), &call).map_err(|it| it.message);
        let text = "rms_norm: attribute `eps`: expected f32, got nothing";
        assert_eq!(failure, Err(text.to_owned()));
        let failure = Host::new().execute(Some(rms_norm), &call.attr("eps", Attr::F32(0.0)));
        let text = "rms_norm: expected s with one element for each row, got 3 for [4]";
        assert_eq!(failure.map_err(|it| it.message), Err(text.to_owned()));
    }
}
