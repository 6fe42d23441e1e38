// Grafana's own frame code on the answers of a live InfluxDB: what a panel is given to draw.
//
// Usage: node frames.js ANSWERS. The file is written by the test: panels with their files' settings and
// the server's answers. Prints a line for each kind of panel; any finding ends it with status 1.

const fs = require('fs');
const { JSDOM } = require('jsdom');

// @grafana/data expects a browser around it.
const dom = new JSDOM('', { url: 'http://localhost/' });
for (const name of ['window', 'document', 'navigator', 'HTMLElement', 'Element', 'Node']) {
  // Some of them Node.js has as read-only globals of its own.
  Object.defineProperty(globalThis, name, { value: dom.window[name], configurable: true });
}
const g = require('@grafana/data');
const { lastValueFrom } = require('rxjs');

// Some of them are there under two names.
const transformers = new Map(Object.values(g.standardTransformers).map((one) => [one.id, one]));
g.standardTransformersRegistry.setInit(() =>
  [...transformers.values()].map((transformation) => ({
    id: transformation.id,
    name: transformation.name,
    transformation,
    editor: () => null,
  }))
);

const findings = [];
function demand(holds, panel, what) {
  if (!holds) {
    findings.push(`${panel.dashboard}: ${panel.title}: ${what}`);
  }
}

/** `[[tag_x]]` and `$tag_x` of an alias, as the data source replaces them. */
function named(alias, tags) {
  const value = (_, name) => tags[name] ?? '';
  return alias.replace(/\[\[tag_(\w+)\]\]/g, value).replace(/\$tag_(\w+)/g, value);
}

/** A frame for each series, as of the format `time_series`. */
function seriesFrames(target) {
  return target.series.flatMap((series) => {
    const tags = series.tags ?? {};
    const times = series.values.map((row) => row[0]);
    return series.columns.slice(1).map((_, at) =>
      g.createDataFrame({
        refId: target.refId,
        fields: [
          { name: 'Time', type: g.FieldType.time, values: times },
          {
            name: 'Value',
            type: g.FieldType.number,
            values: series.values.map((row) => row[at + 1]),
            labels: tags,
            config: { displayNameFromDS: named(target.alias, tags) },
          },
        ],
      })
    );
  });
}

/** One frame of all series, as of the format `table`: time, tags, columns. */
function tableFrames(target) {
  if (target.series.length === 0) {
    return [];
  }
  const tags = Object.keys(target.series[0].tags ?? {});
  const columns = target.series[0].columns.slice(1);
  const rows = target.series.flatMap((series) =>
    series.values.map((row) => [row[0], ...tags.map((tag) => series.tags[tag]), ...row.slice(1)])
  );
  const fields = ['Time', ...tags, ...columns].map((name, at) => {
    const values = rows.map((row) => row[at]);
    const isNumber = values.some((value) => typeof value === 'number');
    const type = at === 0 ? g.FieldType.time : isNumber ? g.FieldType.number : g.FieldType.string;
    return { name, type, values };
  });
  return [g.createDataFrame({ refId: target.refId, fields })];
}

function frames(panel) {
  return panel.targets.flatMap((target) =>
    target.resultFormat === 'table' ? tableFrames(target) : seriesFrames(target)
  );
}

const displayed = (all) =>
  all.flatMap((frame) =>
    frame.fields.filter((field) => field.type !== g.FieldType.time).map((field) => g.getFieldDisplayName(field, frame, all))
  );

/** Buckets: every name a number; joined and sorted, each row a bucket, counts as they were. */
function heatmap(panel, all) {
  const name = (frame) => g.getFieldDisplayName(frame.fields[1], frame, all);
  demand(all.length >= 5, panel, `${all.length} buckets`);
  demand(all.every((frame) => /^\d+$/.test(name(frame))), panel, `names ${all.map(name)}`);
  const sorted = [...all].sort((a, b) => Number(name(a)) - Number(name(b)));
  const joined = g.outerJoinDataFrames({ frames: sorted, keepDisplayNames: true });
  const [time, ...buckets] = joined.fields;
  demand(time.type === g.FieldType.time, panel, 'no time comes first');
  demand(time.values.every((at, i) => i === 0 || at > time.values[i - 1]), panel, 'times not in order');
  const bounds = buckets.map((field) => Number(g.getFieldDisplayName(field, joined)));
  demand(bounds.every((bound, i) => i === 0 || bound > bounds[i - 1]), panel, `bounds ${bounds}`);
  const total = (fields) => fields.flatMap((field) => field.values).reduce((sum, n) => sum + (n ?? 0), 0);
  const before = total(all.map((frame) => frame.fields[1]));
  demand(before > 0 && total(buckets) === before, panel, `${total(buckets)} of ${before} counts`);
  const display = g.getDisplayProcessor({ field: { type: g.FieldType.number, config: { unit: panel.options.yAxis.unit } }, theme: g.createTheme() });
  const shown = g.formattedValueToString(display(bounds[0]));
  demand(/ (ns|µs|ms|s)$/.test(shown), panel, `a bound is shown as ${shown}`);
  return `${bounds.length} buckets from ${shown}`;
}

function overTime(panel, all) {
  const names = displayed(all);
  demand(new Set(names).size === names.length, panel, `two of ${names} have one name`);
  demand(names.every((name) => name.trim().length > 0), panel, `a name of ${names} is empty`);
  return names.join(', ');
}

/** Columns that are sorted, computed and renamed are there, and the rows in their order. */
function table(panel, all, asked) {
  demand(all.length === 1, panel, `${all.length} tables`);
  const [frame] = all;
  const names = displayed(all);
  demand(frame.length > 0, panel, 'no rows');
  for (const { matcher } of panel.fieldConfig.overrides) {
    demand(names.includes(matcher.options), panel, `no column ${matcher.options} of ${names}`);
  }
  const numbers = frame.fields.filter((field) => field.type === g.FieldType.number);
  const odd = numbers.filter((field) => field.values.some((value) => value !== null && !Number.isFinite(value)));
  demand(odd.length === 0, panel, `no numbers in ${odd.map((field) => field.name)}`);
  const left = frame.fields.map((field) => field.name).filter((name) => asked.transformed && /^Time/.test(name));
  demand(left.length === 0 || panel.type === 'barchart', panel, `${left} left of ${names}`);
  for (const { id, options } of panel.transformations) {
    if (id === 'sortBy') {
      const { field: by, desc } = options.sort[0];
      const values = frame.fields.find((field) => g.getFieldDisplayName(field, frame) === by)?.values;
      demand(values !== undefined, panel, `nothing to sort by: ${by} of ${names}`);
      const ordered = (values ?? []).every((value, i, list) => i === 0 || value === null || list[i - 1] === null || (desc ? value <= list[i - 1] : value >= list[i - 1]));
      demand(ordered, panel, `${by} not in order: ${values}`);
    }
    if (id === 'calculateField') {
      const field = frame.fields.find((field) => g.getFieldDisplayName(field, frame) === options.alias);
      demand(field?.values.some((value) => Number.isFinite(value)), panel, `${options.alias} has no value`);
    }
  }
  return `${frame.length} rows of ${names.join(', ')}`;
}

/** Grafana draws bars by a text. */
function columns(panel, all, asked) {
  const shown = table(panel, all, asked);
  const kinds = all[0].fields.map((field) => field.type);
  demand(kinds[0] === g.FieldType.string, panel, `bars by ${kinds}`);
  demand(kinds.slice(1).every((kind) => kind === g.FieldType.number), panel, `bars of ${kinds}`);
  return shown;
}

async function main() {
  const { panels } = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  const kinds = { heatmap, table, barchart: columns };
  for (const panel of panels) {
    const raw = frames(panel);
    if (raw.length === 0) {
      demand(panel.mayBeEmpty, panel, 'no answer');
      continue;
    }
    const all = await lastValueFrom(g.transformDataFrame(panel.transformations, raw));
    const shown = (kinds[panel.type] ?? overTime)(panel, all, { transformed: panel.transformations.length > 0 });
    console.log(`${panel.type} ${panel.dashboard}: ${panel.title}: ${shown}`);
  }
  demand(panels.length > 30, { dashboard: 'all', title: 'all' }, `${panels.length} panels`);
}

main()
  .catch((error) => findings.push(error.stack))
  .finally(() => {
    findings.forEach((finding) => console.error(finding));
    process.exit(findings.length === 0 ? 0 : 1);
  });
