//! How each kind of panel is drawn, in the words of its plugin.

use serde_json::{Value as Json, json};

use super::spec::{Look, Panel};

/// The panel's options.
pub fn options(panel: &Panel) -> Json {
    let calcs = match panel.look {
        Look::Numbers => ["mean"],
        _ => ["lastNotNull"],
    };
    let reduce = json!({ "calcs": calcs, "fields": "", "values": false });
    match panel.look {
        Look::Lines | Look::Stack => json!({
            "legend": {
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": true,
                "calcs": ["mean", "max"],
            },
            "tooltip": { "mode": "multi", "sort": "desc" },
        }),
        Look::Numbers | Look::Last => json!({
            "reduceOptions": reduce,
            "colorMode": if panel.limits.is_empty() { "none" } else { "value" },
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
            "wideLayout": true,
        }),
        Look::Bars => json!({
            "reduceOptions": reduce,
            "orientation": "horizontal",
            "displayMode": "basic",
            "valueMode": "color",
            "namePlacement": "auto",
            "showUnfilled": true,
            "sizing": "auto",
            "minVizHeight": 16,
            "minVizWidth": 8,
            "maxVizHeight": 300,
        }),
        Look::Columns => json!({
            "orientation": "auto",
            "xTickLabelRotation": 0,
            "xTickLabelSpacing": 0,
            "showValue": "never",
            "stacking": "none",
            "groupWidth": 0.7,
            "barWidth": 0.9,
            "barRadius": 0.0,
            "fullHighlight": false,
            "legend": {
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": true,
                "calcs": [],
            },
            "tooltip": { "mode": "multi", "sort": "none" },
        }),
        Look::Heatmap => heatmap(panel),
        Look::Table => json!({
            "showHeader": true,
            "cellHeight": "sm",
            "footer": { "show": false, "reducer": ["sum"], "countRows": false, "fields": "" },
        }),
    }
}

/// Counts are each bucket's own, so nothing is left to calculate; each name is a bucket's upper bound.
fn heatmap(panel: &Panel) -> Json {
    json!({
        "calculate": false,
        "rowsFrame": { "layout": "le", "value": "count" },
        "yAxis": { "axisPlacement": "left", "reverse": false, "unit": panel.unit },
        "color": {
            "mode": "scheme",
            "scheme": "Oranges",
            "fill": "dark-orange",
            "scale": "exponential",
            "exponent": 0.5,
            "steps": 64,
            "reverse": false,
        },
        "cellGap": 1,
        "cellValues": { "unit": "short" },
        "filterValues": { "le": 1e-9 },
        "showValue": "never",
        "legend": { "show": true },
        "tooltip": { "mode": "single", "yHistogram": true, "showColorScale": true },
        "exemplars": { "color": "rgba(255,0,255,0.7)" },
    })
}
