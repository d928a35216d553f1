//! `attribute!`: structs and enums that attributes decode to.

/// Declares a struct that is decoded from a dictionary with these entries and no others, or an enum
/// that travels as a number, or an enum of alternatives, of which the first that fits is taken.
///
/// ```
/// xla_ffi::attribute! {
///     /// From where to where.
///     #[derive(Debug)]
///     pub struct Range<'f> { lo: i64, hi: i64, name: Option<&'f str> }
/// }
/// xla_ffi::attribute! {
///     /// Which triangle.
///     #[derive(Debug)]
///     pub enum Uplo: u8 { Lower = b'L', Upper = b'U' }
/// }
/// xla_ffi::attribute! {
///     /// How many.
///     #[derive(Debug)]
///     pub enum Count<'f> { Number(i64), Each(&'f [i64]), Range(Range<'f>) }
/// }
/// ```
#[macro_export]
macro_rules! attribute {
    ($(#[$meta:meta])* $vis:vis struct $name:ident<$f:lifetime> { $($fields:tt)* }) => {
        $crate::attribute!(@struct [$(#[$meta])* $vis] $name [$f] [$name<$f>] $($fields)*);
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        $crate::attribute!(@struct [$(#[$meta])* $vis] $name ['f] [$name] $($fields)*);
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident<$f:lifetime> { $($variants:tt)* }) => {
        $crate::attribute!(@enum [$(#[$meta])* $vis] $name [$f] [$name<$f>] $($variants)*);
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($variants:tt)* }) => {
        $crate::attribute!(@enum [$(#[$meta])* $vis] $name ['f] [$name] $($variants)*);
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident: $wire:ty {
            $($(#[$variant_meta:meta])* $variant:ident = $code:expr),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        $vis enum $name { $($(#[$variant_meta])* #[allow(missing_docs)] $variant),+ }

        impl $crate::Attribute<'_> for $name {
            const KIND: &'static str = stringify!($wire);

            #[inline(always)]
            fn from_value(value: $crate::Value<'_>) -> ::core::option::Option<Self> {
                let code = <$wire as $crate::Attribute<'_>>::from_value(value)?;
                $(if code == $code { return ::core::option::Option::Some($name::$variant); })+
                ::core::option::Option::None
            }

            fn accepts(value: $crate::Value<'_>) -> bool {
                Self::from_value(value).is_some()
            }

            fn expected() -> ::std::string::String {
                let codes = [$(::std::format!("{} ({})", $code, stringify!($variant))),+];
                ::std::format!("{} {}", stringify!($wire), codes.join(" or "))
            }
        }
    };
    (
        @struct [$($head:tt)*] $name:ident [$f:lifetime] [$($type:tt)*]
        $($(#[$field_meta:meta])* $field:ident: $value:ty),* $(,)?
    ) => {
        $($head)* struct $($type)* {
            $($(#[$field_meta])* #[allow(missing_docs)] pub $field: $value),*
        }

        impl<$f> $crate::Attribute<$f> for $($type)* {
            const KIND: &'static str = "dictionary";

            #[inline(always)]
            fn from_value(value: $crate::Value<$f>) -> ::core::option::Option<Self> {
                match value {
                    $crate::Value::Dictionary(entries) => {
                        <Self as $crate::bind::FromAttrs<$f>>::from_attrs(entries)
                    }
                    _ => ::core::option::Option::None,
                }
            }

            fn accepts(value: $crate::Value<'_>) -> bool {
                <$name as $crate::Attribute<'_>>::from_value(value).is_some()
            }

            fn expected() -> ::std::string::String {
                $crate::bind::fields_text(&[
                    $((stringify!($field), <$value as $crate::bind::Field<$f>>::expected())),*
                ])
            }
        }

        impl<$f> $crate::bind::FromAttrs<$f> for $($type)* {
            #[inline(always)]
            fn from_attrs(attrs: $crate::Dictionary<$f>) -> ::core::option::Option<Self> {
                $crate::bind_attributes!(attrs, $f; $($field: $value),*);
                ::core::option::Option::Some(Self { $($field),* })
            }

            fn explain(attrs: $crate::Dictionary<$f>, problems: &mut $crate::bind::Problems) {
                $(problems.attribute::<$value>(attrs, stringify!($field));)*
                problems.only(attrs, &[$(stringify!($field)),*]);
            }
        }
    };
    (
        @enum [$($head:tt)*] $name:ident [$f:lifetime] [$($type:tt)*]
        $($(#[$variant_meta:meta])* $variant:ident($value:ty)),+ $(,)?
    ) => {
        $($head)* enum $($type)* {
            $($(#[$variant_meta])* #[allow(missing_docs)] $variant($value)),+
        }

        impl<$f> $crate::Attribute<$f> for $($type)* {
            const KIND: &'static str = "one of several kinds";

            #[inline(always)]
            fn from_value(value: $crate::Value<$f>) -> ::core::option::Option<Self> {
                $(if let ::core::option::Option::Some(value) =
                    <$value as $crate::Attribute<$f>>::from_value(value)
                {
                    return ::core::option::Option::Some($name::$variant(value));
                })+
                ::core::option::Option::None
            }

            fn accepts(value: $crate::Value<'_>) -> bool {
                <$name as $crate::Attribute<'_>>::from_value(value).is_some()
            }

            fn expected() -> ::std::string::String {
                let kinds = [$(<$value as $crate::Attribute<$f>>::expected()),+];
                kinds.join(" or ")
            }
        }
    };
}

/// Decodes fields from a dictionary into variables of their names, or returns None.
#[doc(hidden)]
#[macro_export]
macro_rules! bind_attributes {
    ($attrs:ident, $f:lifetime; $($field:ident: $value:ty),*) => {
        const COUNT: usize = <[&str]>::len(&[$(stringify!($field)),*]);
        const NAMES: [&str; COUNT] = [$(stringify!($field)),*];
        const _: () = assert!($crate::bind::distinct(NAMES), "two attributes have one name");
        const POSITIONS: [usize; COUNT] = $crate::bind::positions(NAMES);
        let all_required = true $(&& <$value as $crate::bind::Field<$f>>::REQUIRED)*;
        if all_required && $attrs.len() != COUNT {
            return ::core::option::Option::None;
        }
        let position = if all_required {
            $crate::bind::Position::Certain
        } else {
            $crate::bind::Position::Within
        };
        let mut declared = 0;
        let mut found = 0;
        $(
            let $field = <$value as $crate::bind::Field<$f>>::decode(
                $attrs, position(POSITIONS[declared]), stringify!($field), &mut found,
            )?;
            declared += 1;
        )*
        let _ = declared;
        if found != $attrs.len() {
            return ::core::option::Option::None;
        }
    };
}
