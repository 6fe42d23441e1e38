//! Type information built by hand: what is found in it, and what of it is refused.

use super::*;

/// Builds BTF by hand: strings and words of the type section.
fn btf(strings: &str, types: &[u32]) -> Vec<u8> {
    let types: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut data = MAGIC.to_ne_bytes().to_vec();
    data.extend([1, 0]);
    for word in [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
        data.extend(word.to_ne_bytes());
    }
    data.extend(types);
    data.extend(strings.as_bytes());
    data
}

fn info(kind: u32, vlen: u32, kflag: u32) -> u32 {
    kflag << 31 | kind << 24 | vlen
}

#[test]
fn members_are_found_through_anonymous_unions_nested_structs_and_bit_fields() {
    let strings = "\0outer\0inner\0a\0b\0flag\0";
    // Names: outer 1, inner 7, a 13, b 15, flag 17.
    let types = [
        0,
        info(1, 0, 0),
        4,
        32, // 1: int
        7,
        info(kind::STRUCT, 2, 0),
        8,
        13,
        1,
        0,
        15,
        1,
        32, // 2: struct inner { a; b; }
        0,
        info(5, 1, 0),
        8,
        7,
        2,
        0, // 3: union { struct inner inner; }
        1,
        info(kind::STRUCT, 2, 1),
        16,
        0,
        3,
        64,
        17,
        1,
        3 | 1 << 24, // 4: outer
    ];
    let btf = Btf::parse(btf(strings, &types)).unwrap();
    let plain = |bit_offset| Some(Member { bit_offset, bit_width: 0 });
    assert_eq!(btf.member("outer.inner.b"), plain(96));
    assert_eq!(btf.member("outer.flag"), Some(Member { bit_offset: 3, bit_width: 1 }));
    assert_eq!(btf.member("outer.missing|inner.b"), plain(32));
    assert_eq!(btf.member("outer.missing"), None);
    assert_eq!(btf.member("nothing.at_all"), None);
}

#[test]
fn structs_in_themselves_have_an_end() {
    // struct s { struct s; }, and twelve levels of four anonymous members each.
    let own = [1, info(kind::STRUCT, 1, 0), 4, 0, 1, 0];
    let parsed = Btf::parse(btf("\0s\0", &own)).unwrap();
    assert_eq!(parsed.member("s.a"), None);
    let level = |id: u32| {
        let name = u32::from(id == 1);
        let member = [0, (id + 1).min(12), 0];
        [vec![name, info(kind::STRUCT, 4, 0), 4], member.repeat(4)].concat()
    };
    let types: Vec<u32> = (1..=12).flat_map(level).collect();
    let parsed = Btf::parse(btf("\0s\0", &types)).unwrap();
    assert_eq!(parsed.member("s.a"), None);
}

#[test]
fn damaged_input_is_an_error() {
    let good = btf("\0x\0", &[1, info(kind::STRUCT, 0, 0), 0]);
    assert!(Btf::parse(good.clone()).is_ok());
    assert!(Btf::parse(Vec::new()).is_err());
    assert!(Btf::parse(good[..30].to_vec()).is_err());
    assert!(Btf::parse(btf("\0", &[0, info(31, 0, 0), 0])).is_err());
}

#[test]
fn names_that_begin_alike_are_told_apart_and_of_equal_ones_the_first_is_taken() {
    let strings = "\0btf_trace_a\0btf_trace_b\0same\0";
    // Names: btf_trace_a 1, btf_trace_b 13, same 25. Type 1 has none.
    let typedef = info(kind::TYPEDEF, 0, 0);
    let size = |bytes| [25, info(kind::STRUCT, 0, 0), bytes];
    let types =
        [[0, info(kind::PTR, 0, 0), 0], [13, typedef, 1], [1, typedef, 1], size(8), size(16)];
    let btf = Btf::parse(btf(strings, &types.concat())).unwrap();
    assert_eq!((btf.tracepoint_id("a"), btf.tracepoint_id("b")), (Some(3), Some(2)));
    assert_eq!((btf.tracepoint_id("c"), btf.tracepoint_id("")), (None, None));
    assert_eq!((btf.struct_id("same"), btf.size("same")), (Some(4), Some(8)));
    assert_eq!(btf.struct_id("btf_trace_a"), None, "of another kind");
}
