//! LAPACK's character arguments as enums. The one file that knows their wire codes (ASCII letters).

use std::fmt;

/// Defines one enum with its letters, so that the letters, the parser and the error cannot drift.
macro_rules! word {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every value, with LAPACK's ASCII code.
            pub const CODES: &'static [(Self, u8)] = &[$((Self::$variant, $code)),+];

            /// LAPACK's ASCII code.
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$variant => $code,)+
                }
            }
        }

        impl TryFrom<u8> for $name {
            type Error = UnknownCode;

            fn try_from(code: u8) -> Result<Self, UnknownCode> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err(UnknownCode {
                        word: stringify!($name),
                        expected: concat!($("'", stringify!($variant), "' ",)+),
                        codes: &[$($code),+],
                        code,
                    }),
                }
            }
        }
    };
}

word! {
    /// The triangle of a square matrix that is stored.
    Uplo {
        /// `'L'`: on and below the diagonal.
        Lower = b'L',
        /// `'U'`: on and above the diagonal.
        Upper = b'U',
    }
}

word! {
    /// The side on which a matrix multiplies.
    Side {
        /// `'L'`: op(A)·X.
        Left = b'L',
        /// `'R'`: X·op(A).
        Right = b'R',
    }
}

word! {
    /// What op(A) is.
    Trans {
        /// `'N'`: op(A) = A.
        None = b'N',
        /// `'T'`: op(A) = Aᵀ.
        Transpose = b'T',
        /// `'C'`: op(A) = Aᴴ, which is Aᵀ for real scalars.
        ConjTranspose = b'C',
    }
}

word! {
    /// The triangular systems that are solved with a Cholesky factor L.
    Sweeps {
        /// `'B'`: both, L·Lᴴ·X = B.
        Both = b'B',
        /// `'F'`: from the first row to the last, L·X = B.
        Forward = b'F',
        /// `'A'`: from the last row to the first, with the adjoint: Lᴴ·X = B.
        Backward = b'A',
    }
}

word! {
    /// Whether a triangular matrix has an implicit unit diagonal.
    Diag {
        /// `'N'`: the diagonal is stored.
        NonUnit = b'N',
        /// `'U'`: the diagonal is one and its storage is never read.
        Unit = b'U',
    }
}

word! {
    /// Whether vectors are computed beside values.
    Vectors {
        /// `'N'`: values only.
        None = b'N',
        /// `'V'`: both.
        Wanted = b'V',
    }
}

word! {
    /// Whether eigenvalues are ordered along the diagonal of a Schur form.
    Sort {
        /// `'N'`: they come in the order in which they are found.
        None = b'N',
    }
}

word! {
    /// Which singular vectors are computed beside the values.
    SingularVectors {
        /// `'N'`: none.
        None = b'N',
        /// `'S'`: as many columns of U and V as there are singular values.
        Thin = b'S',
        /// `'A'`: square U and V.
        All = b'A',
    }
}

impl Uplo {
    /// The other triangle.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Lower => Self::Upper,
            Self::Upper => Self::Lower,
        }
    }
}

impl SingularVectors {
    /// The columns of U and the rows of Vᴴ of an m × n matrix.
    #[must_use]
    pub fn sides(self, m: usize, n: usize) -> (usize, usize) {
        match self {
            Self::All => (m, n),
            Self::Thin => (m.min(n), m.min(n)),
            Self::None => (0, 0),
        }
    }
}

/// A byte that is no code of the word that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCode {
    word: &'static str,
    expected: &'static str,
    codes: &'static [u8],
    code: u8,
}

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected the code of a {}:", self.word)?;
        let names = self.expected.split_whitespace();
        for (i, (name, code)) in names.zip(self.codes).enumerate() {
            let or = if i == 0 { "" } else { " or" };
            write!(f, "{or} {code} ('{}', {})", char::from(*code), name.trim_matches('\''))?;
        }
        write!(f, ", got {}", self.code)?;
        if self.code.is_ascii_graphic() {
            write!(f, " ('{}')", char::from(self.code))?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_parse_to_their_own_word() {
        assert!(Uplo::CODES.iter().all(|&(word, code)| Uplo::try_from(code) == Ok(word)));
        assert!(Side::CODES.iter().all(|&(word, code)| Side::try_from(code) == Ok(word)));
        assert!(Trans::CODES.iter().all(|&(word, code)| Trans::try_from(code) == Ok(word)));
        assert!(Diag::CODES.iter().all(|&(word, code)| Diag::try_from(code) == Ok(word)));
        assert!(
            SingularVectors::CODES
                .iter()
                .all(|&(word, code)| SingularVectors::try_from(code) == Ok(word))
        );
    }

    #[test]
    fn unknown_code_says_what_was_expected() {
        let text = |error: Result<Trans, UnknownCode>| error.map_err(|e| e.to_string());
        assert_eq!(
            text(Trans::try_from(b'X')),
            Err("expected the code of a Trans: 78 ('N', None) or 84 ('T', Transpose) \
                 or 67 ('C', ConjTranspose), got 88 ('X')"
                .to_owned())
        );
        assert_eq!(
            Uplo::try_from(0).map_err(|e| e.to_string()),
            Err("expected the code of a Uplo: 76 ('L', Lower) or 85 ('U', Upper), got 0".to_owned())
        );
    }
}
