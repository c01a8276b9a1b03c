//! Traces of requests.

use springtide_cli::workload::{MOST_BLOCKS, records};

/// A trace file. What is read, written as JSON, is read as the same; and who asks for fewer requests gets the first.
pub fn trace(data: &[u8]) {
    let Ok(read) = records(data, usize::MAX) else { return };
    assert!(!read.is_empty() && read.len() <= data.len());
    let mut text = String::new();
    for record in &read {
        assert!(record.hash_ids.len() <= MOST_BLOCKS);
        let (timestamp, input, output) = (record.timestamp, record.input_length, record.output_length);
        text += &format!(
            "{{\"timestamp\":{timestamp},\"input_length\":{input},\"output_length\":{output},\"hash_ids\":{:?}}}\n",
            record.hash_ids
        );
    }
    assert_eq!(records(text.as_bytes(), usize::MAX).as_ref(), Ok(&read));
    assert_eq!(records(data, 1).as_deref(), Ok(&read[..1]));
}
