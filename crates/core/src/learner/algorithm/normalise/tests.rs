mod rewards;
mod values;
