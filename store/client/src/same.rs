//! Keys that stand twice in one call.

use std::collections::HashMap;

/// For each key the place where it stands first; `None` if no key stands twice.
pub(crate) fn firsts(keys: &[&[u8]]) -> Option<Vec<usize>> {
    if keys.len() < 2 {
        return None;
    }
    let mut seen = HashMap::with_capacity(keys.len());
    let firsts: Vec<usize> =
        keys.iter().enumerate().map(|(at, key)| *seen.entry(*key).or_insert(at)).collect();
    (seen.len() < keys.len()).then_some(firsts)
}

#[cfg(test)]
mod tests {
    use super::firsts;

    #[test]
    fn every_key_knows_where_it_stands_first() {
        assert_eq!(firsts(&[]), None);
        assert_eq!(firsts(&[b"a", b"b", b""]), None);
        assert_eq!(firsts(&[b"a", b"b", b"a", b"", b"b", b"", b"c"]), Some(vec![0, 1, 0, 3, 1, 3, 6]));
    }
}
