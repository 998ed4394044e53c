/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the lines run. Cards stand in rows below the bar of their switch. Above each row are lanes: one for the rail of
 * each switch that its hosts are on, then cables. Links between switches run left of everything, what leads to another
 * row or group right of it; each side has lanes, too, and no two lines share a stretch of one.
 */
const LANE = 8, NEAR = 10;

/* The lowest lane of @taken, a list of lanes with intervals, in which [@a, @b] is free; it is taken. */
function takeLane(taken, a, b) {
	const low = Math.min(a, b), high = Math.max(a, b);
	let lane = 0;
	while ((taken[lane] ?? []).some(([from, to]) => low <= to && from <= high))
		lane++;
	(taken[lane] ??= []).push([low, high]);
	return lane;
}

/* So many columns that the rows are about equally full. */
function columnsOf(n, width, least, gap) {
	const most = Math.max(1, Math.floor((width + gap) / (least + gap)));
	return Math.max(1, Math.ceil(n / Math.ceil(n / most)));
}

/* Lanes on the right: which line takes which. Places are told as group + row / 1000. */
function lanesOnTheRight(plan) {
	const taken = [];
	const place = pin => pin.group + (pin.row + 1) / 1000;
	for (const group of plan.groups) {
		for (const rail of group.foreign) {
			const rows = group.pins.filter(p => p.to === rail.to).map(place);
			const all = [...rows, rail.to];
			rail.lane = takeLane(taken, Math.min(...all), Math.max(...all));
		}
	}
	for (const cable of plan.cables) {
		const [a, b] = cable.pins;
		cable.across = a.group !== b.group || a.row !== b.row;
		cable.lane = cable.across ? takeLane(taken, place(a), place(b)) : 0;
	}
	return taken.length;
}

/* Lanes above each row of @group: rails first. */
function lanesAbove(plan, group) {
	const rows = Array.from({length: Math.ceil(group.cards.length / group.columns)}, () => ({lanes: new Map(), cables: []}));
	const at = pin => pin.card % group.columns + pin.along;
	for (const pin of group.pins)
		if (pin.to !== null && !rows[pin.row].lanes.has(pin.to))
			rows[pin.row].lanes.set(pin.to, 0);
	for (const {lanes} of rows)
		[...lanes.keys()].sort((a, b) => (a !== group.index) - (b !== group.index) || a - b)
			.forEach((to, i) => lanes.set(to, i));
	for (const cable of plan.cables) {
		cable.pins.forEach((pin, end) => {
			if (pin.group !== group.index || (end && !cable.across))
				return;
			const row = rows[pin.row];
			const lane = takeLane(row.cables, at(pin), cable.across ? group.columns : at(cable.pins[1]));
			pin.lane = row.lanes.size + lane;
			if (!cable.across)
				cable.pins[1].lane = pin.lane;
		});
	}
	group.rows = rows;
	return Math.max(0, ...rows.map(row => row.lanes.size + row.cables.length));
}

function setStyle(element, name, value) {
	if (element.style[name] !== value)
		element.style[name] = value;
}

/* How many columns each group has, and room for the lanes. */
function arrange(graph, plan, least) {
	const gap = innerWidth <= 600 ? 8 : 10, pad = innerWidth <= 600 ? 12 : 18;
	const left = [];
	for (const trunk of plan.trunks)
		trunk.lane = takeLane(left, trunk.from, trunk.to);
	const leftWidth = left.length ? left.length * LANE + 8 : 0;
	let rightLanes = 0;
	for (let turn = 0; turn < 3; turn++) { /* lanes take width, which may make more rows */
		const width = graph.clientWidth - leftWidth - rightLanes * LANE;
		for (const group of plan.groups) {
			group.columns = columnsOf(group.cards.length, width - pad, least, gap);
			for (const pin of group.pins)
				pin.row = Math.floor(pin.card / group.columns);
		}
		rightLanes = Math.max(rightLanes, lanesOnTheRight(plan));
	}
	setStyle(graph, "paddingLeft", `${leftWidth}px`);
	setStyle(graph, "paddingRight", `${rightLanes ? rightLanes * LANE + 6 : 0}px`);
	for (const group of plan.groups) {
		const room = `${2 * NEAR + LANE * Math.max(0, lanesAbove(plan, group) - 1)}px`;
		setStyle(group.grid, "gridTemplateColumns", `repeat(${group.columns}, minmax(0, 1fr))`);
		setStyle(group.grid, "rowGap", room);
		setStyle(group.grid, "paddingTop", group.cards.length ? room : "0px");
	}
}

/*
 * How high each line meets the bar of its switch: at each edge those that come from above first, the nearest lane first,
 * then those from below, the farthest first; so no line crosses another there.
 */
function endsAtBars(plan, bars) {
	const edges = new Map(), found = new Map();
	const meet = (side, index, fromAbove, lane, put) => {
		const key = side + index;
		edges.set(key, [...edges.get(key) ?? [], {index, order: fromAbove ? lane : 1e6 - lane, put}]);
	};
	for (const trunk of plan.trunks) {
		found.set(trunk, {});
		meet("left", trunk.from, false, trunk.lane, y => found.get(trunk).from = y);
		meet("left", trunk.to, true, trunk.lane, y => found.get(trunk).to = y);
	}
	for (const group of plan.groups)
		for (const rail of group.foreign)
			meet("right", rail.to, group.index < rail.to, rail.lane, y => found.set(rail, y));
	for (const ends of edges.values())
		ends.sort((a, b) => a.order - b.order).forEach(({index, put}, i) =>
			put(bars[index].top + (bars[index].bottom - bars[index].top) * (i + 1) / (ends.length + 1)));
	return found;
}

/* Draw all lines: @least is the width of the narrowest card. */
function drawWires(graph, plan, least) {
	arrange(graph, plan, least);
	const origin = graph.getBoundingClientRect();
	const box = element => {
		const r = element.getBoundingClientRect();
		return {left: r.left - origin.left, right: r.right - origin.left, top: r.top - origin.top, bottom: r.bottom - origin.top};
	};
	const width = origin.width, right = width - parseFloat(graph.style.paddingRight || 0);
	const bars = plan.groups.map(group => group.bar && box(group.bar));
	const barY = endsAtBars(plan, bars);
	for (const group of plan.groups) {
		const cards = group.cards.map(box);
		for (const pin of group.pins) {
			const p = box(pin.element);
			pin.x = (p.left + p.right) / 2;
			pin.top = cards[pin.card].top;
		}
		group.tops = group.rows.map((_, r) => cards[r * group.columns].top);
	}
	const laneY = (group, row, lane) => group.tops[row] - NEAR - lane * LANE;
	for (const group of plan.groups) {
		const railX = group.bar ? bars[group.index].left + 8 : 0;
		const rows = group.rows.map((row, r) => ({y: laneY(group, r, row.lanes.get(group.index) ?? 0),
			pins: group.pins.filter(p => p.row === r && p.to === group.index)})).filter(row => row.pins.length);
		if (group.rail)
			group.rail.setAttribute("d", rows.length ? `M${railX} ${bars[group.index].bottom}V${rows.at(-1).y}` +
				rows.map(row => `M${railX} ${row.y}H${Math.max(...row.pins.map(p => p.x))}`).join("") : "");
		for (const rail of group.foreign) {
			const x = right + 8 + rail.lane * LANE, y = barY.get(rail);
			const lines = group.rows.map((row, r) => ({y: laneY(group, r, row.lanes.get(rail.to) ?? 0),
				pins: group.pins.filter(p => p.row === r && p.to === rail.to)})).filter(row => row.pins.length);
			const ys = [y, ...lines.map(line => line.y)];
			rail.path.setAttribute("d", `M${bars[rail.to].right} ${y}H${x}M${x} ${Math.min(...ys)}V${Math.max(...ys)}` +
				lines.map(line => `M${x} ${line.y}H${Math.min(...line.pins.map(p => p.x))}`).join(""));
		}
		for (const pin of group.pins)
			if (pin.to !== null)
				pin.path.setAttribute("d", `M${pin.x} ${pin.top}V${laneY(group, pin.row, group.rows[pin.row].lanes.get(pin.to))}`);
	}
	for (const trunk of plan.trunks) {
		const x = bars[trunk.from].left - 6 - trunk.lane * LANE;
		trunk.path.setAttribute("d", `M${bars[trunk.from].left} ${barY.get(trunk).from}H${x}` +
			`V${barY.get(trunk).to}H${bars[trunk.to].left}`);
	}
	for (const cable of plan.cables) {
		const [a, b] = cable.pins, y = [a, b].map(p => laneY(plan.groups[p.group], p.row, p.lane));
		cable.path.setAttribute("d", `M${a.x} ${a.top}V${y[0]}` +
			(cable.across ? `H${right + 8 + cable.lane * LANE}V${y[1]}` : "") + `H${b.x}V${b.top}`);
	}
}
