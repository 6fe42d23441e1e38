//! A dashboard as Grafana reads it: variables, grid, identities.

use anyhow::Result;
use serde_json::{Value as Json, json};

use super::{
    Edition, layout, panels,
    spec::{Ask, Dashboard, Panel, Row, Variable, What},
};

/// Grafana's version of the form; newer ones move older forms on by themselves.
const SCHEMA: u32 = 39;
/// The agent's usual interval, and others that sites choose.
const INTERVALS: [&str; 6] = ["1s", "5s", "10s", "30s", "1m", "5m"];
const USUAL: &str = "10s";

/// The whole file.
pub fn dashboard(dashboard: &Dashboard, edition: &Edition) -> Result<Json> {
    let mut places = Vec::new();
    let mut all = Vec::new();
    let (mut id, mut top) = (0, 0);
    for row in &dashboard.rows {
        let (heading, own, next) = layout::row(row, top);
        id += 1;
        all.push(heading_of(row, id, heading));
        places.push(heading);
        for (panel, place) in row.panels.iter().zip(own) {
            id += 1;
            if let Some(panel) = told(panel, edition) {
                all.push(panels::panel(&panel, dashboard.scope, edition, id, place));
                places.push(place);
            }
        }
        top = next;
    }
    layout::check(&places)?;
    let key = dashboard.title.to_lowercase();
    Ok(json!({
        "uid": format!("{}-{}", dashboard.uid, edition.key),
        "title": format!("jobtrace: {} ({})", dashboard.title, edition.name),
        "description": dashboard.help,
        "tags": ["jobtrace", key, edition.key],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "fiscalYearStartMonth": 0,
        "weekStart": "",
        "timezone": "browser",
        "refresh": "",
        "time": { "from": dashboard.from, "to": "now" },
        "timepicker": {},
        "annotations": { "list": [] },
        "links": links(edition),
        "templating": { "list": templating(dashboard, edition) },
        "panels": all,
    }))
}

/// The panel without what this edition's data source does not keep.
fn told(panel: &Panel, edition: &Edition) -> Option<Panel> {
    let is_kept = |ask: &&Ask| edition.facts || !matches!(ask.what, What::Facts(_));
    let asks: Vec<Ask> = panel.asks.iter().filter(is_kept).cloned().collect();
    (!asks.is_empty()).then(|| Panel { asks, ..panel.clone() })
}

/// To the other dashboards of the same data source, with time and choices.
fn links(edition: &Edition) -> Json {
    json!([{
        "type": "dashboards",
        "title": "jobtrace",
        "tags": ["jobtrace", edition.key],
        "asDropdown": false,
        "includeVars": true,
        "keepTime": true,
        "targetBlank": false,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }])
}

fn heading_of(row: &Row, id: u32, place: layout::Place) -> Json {
    let mut heading = json!({
        "id": id,
        "type": "row",
        "title": row.title,
        "collapsed": false,
        "panels": [],
        "gridPos": panels::grid(place),
    });
    if let Some(variable) = row.each {
        heading["repeat"] = json!(variable);
        heading["title"] = json!(format!("{}: ${variable}", row.title));
    }
    heading
}

fn templating(dashboard: &Dashboard, edition: &Edition) -> Vec<Json> {
    let source = json!({
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": edition.source,
        "regex": "",
        "multi": false,
        "includeAll": false,
        "hide": 0,
        "refresh": 1,
        "skipUrlSync": false,
        "options": [],
        "current": {},
    });
    let chosen = |step: &str| json!({ "selected": step == USUAL, "text": step, "value": step });
    let step = json!({
        "type": "interval",
        "name": "step",
        "label": "Agent's interval",
        "description": "The agent's `interval`, or a longer one. If it is too short, graphs show \
                        gaps and peaks that do not exist.",
        "query": INTERVALS.join(","),
        "auto": false,
        "auto_count": 30,
        "auto_min": "10s",
        "hide": 0,
        "refresh": 2,
        "skipUrlSync": false,
        "current": chosen(USUAL),
        "options": INTERVALS.map(chosen),
    });
    let mut all = vec![source];
    all.extend(dashboard.variables.iter().map(|variable| choice(variable, edition)));
    all.push(step);
    all
}

fn choice(variable: &Variable, edition: &Edition) -> Json {
    let current = match variable.many {
        true => json!({ "selected": true, "text": ["All"], "value": ["$__all"] }),
        false => json!({}),
    };
    json!({
        "type": "query",
        "name": variable.tag,
        "label": variable.label,
        "datasource": panels::source(edition),
        "query": (edition.variable)(variable),
        "regex": "",
        "refresh": 2,
        // By number where they are numbers; of jobs the newest first.
        "sort": if variable.many { 3 } else { 4 },
        "multi": variable.many,
        "includeAll": variable.many,
        "hide": 0,
        "skipUrlSync": false,
        "options": [],
        "current": current,
    })
}
