//! A panel as Grafana reads it: what it asks, how it is drawn, what is done with the answers.

use serde_json::{Value as Json, json};

use super::{
    Edition,
    layout::Place,
    options::options,
    spec::{Ask, Look, Panel, Scope, Step, What},
};

/// The data source that was chosen at the top.
pub fn source(edition: &Edition) -> Json {
    json!({ "type": edition.source, "uid": "${datasource}" })
}

/// A place in Grafana's words.
pub fn grid(place: Place) -> Json {
    json!({ "x": place.x, "y": place.y, "w": place.w, "h": place.h })
}

/// The whole panel.
pub fn panel(panel: &Panel, scope: &[Scope], edition: &Edition, id: u32, place: Place) -> Json {
    json!({
        "id": id,
        "type": kind(panel.look),
        "title": panel.title,
        "description": panel.help,
        "datasource": source(edition),
        "gridPos": grid(place),
        // No step of time is shorter than what was measured.
        "interval": "$step",
        "targets": targets(panel, scope, edition),
        "transformations": panel.steps.iter().map(transformation).collect::<Vec<_>>(),
        "fieldConfig": { "defaults": defaults(panel, edition), "overrides": overrides(panel, edition) },
        "options": options(panel),
    })
}

fn kind(look: Look) -> &'static str {
    match look {
        Look::Lines | Look::Stack => "timeseries",
        Look::Numbers | Look::Last => "stat",
        Look::Bars => "bargauge",
        Look::Columns => "barchart",
        Look::Heatmap => "heatmap",
        Look::Table => "table",
    }
}

fn targets(panel: &Panel, scope: &[Scope], edition: &Edition) -> Vec<Json> {
    let named = |(at, ask): (usize, &Ask)| {
        let mut target = (edition.target)(ask, scope, panel.look);
        target["refId"] = json!(char::from(b'A' + at as u8).to_string());
        target["datasource"] = source(edition);
        target
    };
    panel.asks.iter().enumerate().map(named).collect()
}

fn defaults(panel: &Panel, edition: &Edition) -> Json {
    let mut steps = vec![json!({ "color": "green", "value": null })];
    steps.extend(panel.limits.iter().map(|(from, color)| json!({ "color": color, "value": from })));
    let by_limits = !panel.limits.is_empty() && !matches!(panel.look, Look::Lines | Look::Stack);
    let color = if by_limits { "thresholds" } else { "palette-classic" };
    let mut defaults = json!({
        "unit": panel.unit,
        "color": { "mode": color },
        "thresholds": { "mode": "absolute", "steps": steps },
        "mappings": [],
        "custom": custom(panel),
    });
    if panel.look != Look::Table && panel.look != Look::Heatmap {
        defaults["min"] = json!(0);
    }
    if panel.unit == "percentunit" && panel.look != Look::Table {
        defaults["max"] = json!(1);
    }
    if let (true, Some(name)) = (edition.legend_by_labels, by_labels(panel)) {
        defaults["displayName"] = json!(name);
    }
    defaults
}

/// Names made of labels, where the answers have some.
fn by_labels(panel: &Panel) -> Option<String> {
    let ask = panel.asks.first()?;
    match ask.what {
        What::Buckets(_) => Some("${__field.labels.le}".into()),
        _ if ask.legend.contains('{') => Some(ask.legend.replace('{', "${__field.labels.")),
        _ => None,
    }
}

fn custom(panel: &Panel) -> Json {
    match panel.look {
        Look::Lines | Look::Stack => json!({
            "drawStyle": "line",
            "lineInterpolation": "stepBefore",
            "lineWidth": if panel.look == Look::Stack { 0 } else { 1 },
            "fillOpacity": if panel.look == Look::Stack { 70 } else { 0 },
            "gradientMode": "none",
            "showPoints": "auto",
            "pointSize": 4,
            "spanNulls": false,
            "axisPlacement": "auto",
            "axisLabel": "",
            "stacking": {
                "group": "A",
                "mode": if panel.look == Look::Stack { "normal" } else { "none" },
            },
            "thresholdsStyle": { "mode": if panel.limits.is_empty() { "off" } else { "dashed" } },
        }),
        Look::Heatmap => json!({ "scaleDistribution": { "type": "linear" } }),
        Look::Columns => json!({ "lineWidth": 1, "fillOpacity": 80, "gradientMode": "none" }),
        Look::Table => {
            json!({ "align": "auto", "cellOptions": { "type": "auto" }, "filterable": true })
        }
        Look::Numbers | Look::Last | Look::Bars => json!({}),
    }
}

fn overrides(panel: &Panel, edition: &Edition) -> Vec<Json> {
    let mut all: Vec<Json> = panel
        .units
        .iter()
        .map(|(heading, unit)| {
            let mut properties = vec![json!({ "id": "unit", "value": unit })];
            if *unit == "percentunit" && !panel.limits.is_empty() {
                properties.push(json!({
                    "id": "custom.cellOptions",
                    "value": { "type": "color-background", "mode": "basic" },
                }));
            }
            json!({ "matcher": { "id": "byName", "options": heading }, "properties": properties })
        })
        .collect();
    let by_job = |ask: &Ask| matches!(ask.what, What::Whole(_, by) if by.contains(&"job"));
    if panel.look == Look::Table && panel.asks.iter().any(by_job) {
        all.push(json!({
            "matcher": { "id": "byName", "options": "job" },
            "properties": [{ "id": "links", "value": [{
                "title": "Open this job",
                "url": format!(
                    "/d/jobtrace-job-{}?${{datasource:queryparam}}&var-job=${{__value.text}}&${{__url_time_range}}",
                    edition.key
                ),
                "targetBlank": false,
            }] }],
        }));
    }
    // What is held or allowed is a line above what is used.
    let is_bound = |ask: &&Ask| ["allocated", "limit"].contains(&ask.legend);
    let lines = matches!(panel.look, Look::Lines | Look::Stack);
    all.extend(panel.asks.iter().filter(|ask| lines && is_bound(ask)).map(|ask| {
        json!({
            "matcher": { "id": "byName", "options": ask.legend },
            "properties": [
                { "id": "custom.stacking", "value": { "group": "B", "mode": "none" } },
                { "id": "custom.fillOpacity", "value": 0 },
                { "id": "custom.lineWidth", "value": 2 },
                { "id": "custom.lineStyle", "value": { "fill": "dash", "dash": [10, 10] } },
                { "id": "color", "value": { "mode": "fixed", "fixedColor": "text" } },
            ],
        })
    }));
    all
}

fn transformation(step: &Step) -> Json {
    match step {
        Step::Join(column) => json!({
            "id": "joinByField",
            "options": { "byField": column, "mode": "inner" },
        }),
        Step::Group { by, of, how } => {
            let mut fields = serde_json::Map::new();
            for column in *by {
                let group = json!({ "operation": "groupby", "aggregations": [] });
                fields.insert((*column).into(), group);
            }
            for column in *of {
                let group = json!({ "operation": "aggregate", "aggregations": [how] });
                fields.insert((*column).into(), group);
            }
            json!({ "id": "groupBy", "options": { "fields": fields } })
        }
        Step::Compute(heading, left, operator, right) => json!({
            "id": "calculateField",
            "options": {
                "alias": heading,
                "mode": "binary",
                "binary": { "left": left, "operator": operator, "right": right },
                "replaceFields": false,
            },
        }),
        Step::Clock(format) => json!({
            "id": "formatTime",
            "options": { "timeField": "Time", "outputFormat": format, "useTimezone": true },
        }),
        Step::Arrange { without, names } => {
            let without: serde_json::Map<_, _> =
                without.iter().map(|name| ((*name).to_owned(), json!(true))).collect();
            let names: serde_json::Map<_, _> =
                names.iter().map(|(old, new)| ((*old).to_owned(), json!(new))).collect();
            json!({
                "id": "organize",
                "options": { "excludeByName": without, "renameByName": names, "indexByName": {} },
            })
        }
        Step::Sort { by, up } => json!({
            "id": "sortBy",
            "options": { "fields": {}, "sort": [{ "field": by, "desc": !up }] },
        }),
        Step::First(count) => json!({ "id": "limit", "options": { "limitField": count } }),
    }
}
