use super::*;
use crate::host::HostDesign;
use crate::scenario::CnnSpec;

fn planted(budget: &str, is_given: bool) -> Vec<String> {
    let slots = [0, 1, 2].map(|column| SlotId::new(0, column));
    let host = CnnSpec {
        base_channels: 4,
        ..CnnSpec::default()
    };
    let (budget, blueprints) = (budget.parse().unwrap(), BlueprintRegistry::default());
    let found = plantings(&host.plan(10), &slots, &blueprints, budget, is_given);
    let words = |planting: &Planting| {
        let seeds: Vec<String> = planting.iter().map(|(slot, name)| format!("{slot} {name}")).collect();
        seeds.join(", ")
    };
    found.iter().map(words).collect()
}

#[test]
fn budgets_are_multiples_or_totals_of_parameters_or_multiply_accumulates() {
    for (text, (amount, is_macs)) in [
        ("2x", (Amount::Times(2.0), false)),
        ("120k", (Amount::Total(120e3), false)),
        ("1.5M", (Amount::Total(1.5e6), false)),
        ("700", (Amount::Total(700.0), false)),
        ("1.5xmacs", (Amount::Times(1.5), true)),
        ("30Mmacs", (Amount::Total(30e6), true)),
    ] {
        assert_eq!(text.parse(), Ok(Budget { amount, is_macs }), "{text}");
    }
    for wrong in ["", "x", "-3", "2y", "nan", "1e400", "macs"] {
        assert!(wrong.parse::<Budget>().unwrap_err().contains("valid: 2x"), "{wrong}");
    }
    for small in ["0.5x", "1x", "0.9xmacs"] {
        let said = small.parse::<Budget>().unwrap_err();
        assert!(said.contains("must exceed 1x"), "{said}");
    }
}

#[test]
fn each_planting_is_as_strong_as_the_budget_allows() {
    let [first, second, third] = ["r0c0 conv_heavy", "r0c1 conv_heavy", "r0c2 conv_heavy"];
    let two = format!("{first}, {second}");
    let all = format!("{two}, r0c2 attention");
    assert_eq!(planted("100x", false), [&*all, &*two, first, third]);
    assert_eq!(planted("1.1x", false)[2], "r0c2 attention");
    let two = format!("{first}, {third}");
    assert_eq!(planted("100x", true), [&*two, first, second, third]);
}

#[test]
fn nothing_is_planted_where_not_even_the_smallest_seed_fits() {
    assert!(planted("1.0001x", false).is_empty());
    assert!(planted("10", true).is_empty());
}

#[test]
fn a_budget_of_multiply_accumulates_counts_positions() {
    let early = planted("1.2xmacs", true);
    assert!(!early.contains(&"r0c0 conv_heavy".into()), "{early:?}");
}
