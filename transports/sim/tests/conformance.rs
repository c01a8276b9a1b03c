//! The simulated transport keeps every rule, at several speeds and with chunks.

mod world;

use core::time::Duration;

use springtide_transport::conformance::{World, run_all};
use springtide_transport_sim::Shape;
use world::SimWorld;

springtide_transport::conformance_tests!(SimWorld::plain);

#[test]
fn other_shapes_keep_them_too() {
    let slow = Shape { latency: Duration::from_millis(1), bandwidth: 50 << 20, ..Shape::default() };
    let narrow = Shape { depth: 2, max_op: 64 << 10, chunk: 64 << 10, ..Shape::default() };
    let at_once = Shape { latency: Duration::ZERO, bandwidth: u64::MAX, ..Shape::default() };
    for shape in [slow, narrow, at_once] {
        let mut factory =
            || -> Box<dyn World> { Box::new(SimWorld::new(shape, Box::new(|end, _| Box::new(end)))) };
        assert_eq!(run_all(&mut factory), [], "{shape:?}");
    }
}
