//! Where panels lie on Grafana's grid of 24 columns: from the left, line by line.

use anyhow::{Result, ensure};

use super::spec::{Panel, Row};

/// Columns of the grid.
pub const COLUMNS: u32 = 24;

/// A panel's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Columns from the left.
    pub x: u32,
    /// Rows from the top.
    pub y: u32,
    /// Columns.
    pub w: u32,
    /// Rows.
    pub h: u32,
}

/// The places of a row's heading and panels, and where the next row begins.
pub fn row(row: &Row, top: u32) -> (Place, Vec<Place>, u32) {
    let heading = Place { x: 0, y: top, w: COLUMNS, h: 1 };
    let (mut x, mut y, mut tallest) = (0, top + 1, 0);
    let mut places = Vec::new();
    for Panel { width, height, .. } in &row.panels {
        if x + width > COLUMNS {
            (x, y, tallest) = (0, y + tallest, 0);
        }
        places.push(Place { x, y, w: *width, h: *height });
        x += width;
        tallest = tallest.max(*height);
    }
    (heading, places, y + tallest)
}

/// Checks that all lie on the grid and no two share a cell.
///
/// # Errors
/// Names the first that does.
pub fn check(places: &[Place]) -> Result<()> {
    for (at, place) in places.iter().enumerate() {
        ensure!(place.w > 0 && place.h > 0, "panel {at} has no size: {place:?}");
        ensure!(place.x + place.w <= COLUMNS, "panel {at} is off the grid: {place:?}");
        for other in &places[..at] {
            let apart = place.x + place.w <= other.x
                || other.x + other.w <= place.x
                || place.y + place.h <= other.y
                || other.y + other.h <= place.y;
            ensure!(apart, "panel {at} covers another: {place:?}, {other:?}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grafana::spec::Look;

    fn panels(sizes: &[(u32, u32)]) -> Row {
        let panel = |&(w, h)| Panel::new(Look::Lines, "short", "t", "h").size(w, h);
        Row { title: "r", each: None, panels: sizes.iter().map(panel).collect() }
    }

    #[test]
    fn panels_go_from_the_left_and_wrap() {
        let (heading, places, next) = row(&panels(&[(12, 8), (6, 4), (12, 8), (12, 3)]), 5);
        assert_eq!(heading, Place { x: 0, y: 5, w: 24, h: 1 });
        let at: Vec<_> = places.iter().map(|place| (place.x, place.y)).collect();
        assert_eq!(at, [(0, 6), (12, 6), (0, 14), (12, 14)]);
        assert_eq!(next, 22);
        check(&places).unwrap();
    }

    #[test]
    fn what_overlaps_or_leaves_the_grid_is_refused() {
        let place = |x, y, w, h| Place { x, y, w, h };
        check(&[place(0, 0, 12, 8), place(12, 0, 12, 8), place(0, 8, 24, 1)]).unwrap();
        for bad in [
            vec![place(0, 0, 12, 8), place(11, 7, 12, 8)],
            vec![place(20, 0, 5, 1)],
            vec![place(0, 0, 0, 1)],
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }
}
